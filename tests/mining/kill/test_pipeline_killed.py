"""Mining that is killed and resumed."""

from __future__ import annotations

import signal

from tests.mining.killed import run_script

KILLED = """
import sys
from pathlib import Path
from interlingua.mining import candidates, vectors
from interlingua.retrieval.topk import tiles
from tests.mining.killed import die_at
from tests.mining.test_pipeline import SMALL
from tests.mining.two_sides import mine, sides

folder, place, moment = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
vectors.PORTION = 200
places = {
    "vectors": (vectors, "_write"),
    "tiles": (tiles, "write_lists"),
    "pairs": (candidates.OneToOneMatcher, "accept"),
}
if place in places:
    die_at(*places[place], moment)
source, target, _ = sides(folder, 300, 1500)
mined = mine(source, target, folder / "work", memory=SMALL)
(folder / "pairs").write_bytes(mined.pairs.tobytes())
"""


def test_a_run_killed_at_three_points_ends_with_the_same_bytes(tmp_path):
    """Kill in the middle of the vectors, of the tiles and of the pairs."""
    for folder, deaths in (
        ("killed", [("vectors", 5), ("tiles", 4), ("pairs", 1)]),
        ("straight", []),
    ):
        (tmp_path / folder).mkdir()
        for place, moment in [*deaths, ("nowhere", 0)]:
            code = run_script(KILLED, tmp_path / folder, place, moment)
            assert code == (0 if place == "nowhere" else -signal.SIGKILL), place
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    assert (straight / "pairs").stat().st_size > 1000
    tiles = [path.relative_to(straight) for path in straight.glob("work/neighbors-k4/*.npz")]
    assert len(tiles) > 2
    for path in ("pairs", "work/vectors-x/vectors.npy", *tiles):
        assert (killed / path).read_bytes() == (straight / path).read_bytes()

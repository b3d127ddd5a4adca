from interlingua.preparation.progress import StageProgress
from tests.progress_records import Recorded


def test_silence_still_keeps_the_time():
    stages = StageProgress()
    stages.stage("reading", total=2, unit="pairs")
    stages.advance()
    stages.count(5)
    stages.done()
    assert list(stages.seconds) == ["reading"]
    assert stages.seconds["reading"] >= 0


def test_stages_are_shown():
    told = Recorded()
    stages = StageProgress(told)
    stages.stage("reading", total=2, unit="pairs")
    stages.count(1234)
    stages.count(1)
    stages.advance(2)
    assert told.states == [("1,235 pairs", 2, 2)]
    assert told.label == "reading"

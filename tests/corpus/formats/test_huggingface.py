import importlib.util
import sys
from collections import Counter

import pytest

from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.errors import DataError, MissingExtraError
from tests.corpus.conftest import write

PAIRS = [TextPair(f"Satz {i}", f"sentence {i}", "deu_Latn", "eng_Latn") for i in range(5)]
needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="the extra datasets"
)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if importlib.util.find_spec("datasets"):
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


@needs_datasets
def test_parquet_file_and_folder(tmp_path):
    assert write_pairs(iter(PAIRS), tmp_path / "a.parquet") == 5
    assert list(read_pairs(tmp_path / "a.parquet")) == PAIRS
    write_pairs(PAIRS[:2], tmp_path / "b.parquet")
    assert list(read_pairs(tmp_path)) == PAIRS + PAIRS[:2]
    turned = read_pairs(tmp_path / "a.parquet", source_language="en", target_language="de")
    assert next(turned) == PAIRS[0].swapped()


@needs_datasets
def test_saved_to_disk_and_json(tmp_path):
    import datasets

    rows = [{"translation": {"de": p.source, "en": p.target}} for p in PAIRS]
    data = datasets.Dataset.from_list(rows)
    data.save_to_disk(tmp_path / "set")
    datasets.DatasetDict({"train": data}).save_to_disk(tmp_path / "sets")
    write(tmp_path / "json" / "a.json", *rows)
    for name in ("set", "sets", "json"):
        assert list(read_pairs(tmp_path / name)) == PAIRS


@needs_datasets
def test_empty_sides_are_counted_and_bad_rows_told(tmp_path):
    skipped = Counter()
    rows = [{"translation": {"de": "a", "en": None}}, {"translation": {"de": "a", "en": "b"}}]
    write(tmp_path / "a.json", *rows)
    assert len(list(read_pairs(tmp_path / "a.json", format="huggingface", skipped=skipped))) == 1
    assert skipped == {"untranslated": 1}
    (tmp_path / "b.json").write_text('{"text": "a"}')
    with pytest.raises(DataError, match=r"row 1: .*'source' is missing"):
        list(read_pairs(tmp_path / "b.json", format="huggingface"))


@needs_datasets
def test_what_is_no_data_set(tmp_path):
    with pytest.raises(DataError, match="one format"):
        list(read_pairs(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="as a data set"):
        list(read_pairs(tmp_path))
    with pytest.raises(DataError, match=r"ends in \.parquet"):
        write_pairs(PAIRS, tmp_path / "x", format="huggingface")
    with pytest.raises(DataError, match="nothing is written"):
        write_pairs([], tmp_path / "x.parquet")


@needs_datasets
def test_a_hub_id_is_taken_apart(monkeypatch):
    import datasets

    asked = []

    def load_dataset(*arguments, **options):
        asked.append((arguments, options))
        return [{"translation": {"de": "a", "en": "b"}}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for name in ("hf:opus/x:de-en:test", "hf:opus/x:de-en", "hf:opus/x"):
        assert next(read_pairs(name)) == TextPair("a", "b", "deu_Latn", "eng_Latn")
    names = [("opus/x", "de-en"), ("opus/x", "de-en"), ("opus/x", None)]
    assert [arguments for arguments, _ in asked] == names
    assert [options["split"] for _, options in asked] == ["test", "train", "train"]


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[datasets\]'"):
        next(read_pairs("hf:opus/x"))

import numpy as np
import pytest

from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.errors import DataError, InterlinguaError
from interlingua.runtime.workers import in_processes
from tests.corpus.conftest import write


def marked(keys, texts):
    return keys.contaminated_keys(text_keys(texts))


@pytest.fixture
def folders(tmp_path):
    tatoeba, other = tmp_path / "tatoeba", tmp_path / "other"
    write(tatoeba / "deu-eng.tsv", "Guten Tag!\tGood day!\nWie geht's?\tHow are you?\n")
    write(tatoeba / "tatoeba.fra-eng.fra", "Bonjour !\r\nÇa va ?\r\n")
    write(tatoeba / "SOURCE.md", "Downloaded by hand\n")
    write(other / ".cache" / "x.txt", "A hidden sentence\n")
    texts = ["A man is playing.", {"b": "How are you?"}]
    write(other / "deep" / "sts.jsonl.gz", {"score": 3.5, "id": "7", "texts": texts}, "")
    altered = {"An altered sentence.": {"src": "Das Original.", "errtype": "none"}}
    write(other / "xsim.json", altered)
    write(other / "table.csv", '1,"A cell, with a comma"\r\n2,"two\nlines"\r\n')
    (other / "image.dat").write_bytes(b"\x89PNG\xff\xfe\x00" * 20)
    return [tatoeba, other]


def test_every_sentence_of_every_layout_is_found(folders):
    keys = EvaluationKeys.from_folders(folders)
    in_tatoeba = ["guten tag", "Good day", "Wie geht’s", "how are you", "Bonjour", "ça va"]
    in_other = [
        "a man is playing",
        "How are you",
        "an altered sentence",
        "das Original",
        "A cell with a comma",
        "Two lines",
    ]
    clean = [
        "A hidden sentence",
        "Downloaded by hand",
        "7",
        "3.5",
        "1",
        "",
        "...",
        "Good",
        "a man",
        "Guten Tag Good day",
    ]
    assert marked(keys, in_tatoeba + in_other).all()
    assert not marked(keys, clean).any()
    # "How are you" is in both, and was requested twice.
    assert keys.counts == {"tatoeba": 7, "other": 7}
    assert keys.names == ("tatoeba", "other")
    assert [path.name for path in keys.skipped] == ["SOURCE.md", "x.txt", "image.dat"]


def test_two_processes_read_what_one_reads(folders):
    write(folders[0] / "markup.txt", "A <b>bold</b> word\n")
    alone = EvaluationKeys.from_folders(folders, markup="strip")
    assert marked(alone, ["A bold word"]).all()
    with in_processes(2, "") as workers:
        shared = EvaluationKeys.from_folders(folders, markup="strip", workers=workers)
        (folders[0] / "broken.txt").write_bytes(b"\xff\xfe\xff")
        with pytest.raises(InterlinguaError, match=r"broken\.txt"):
            EvaluationKeys.from_folders(folders, workers=workers)
    assert (shared.names, shared.skipped) == (alone.names, alone.skipped)
    for of_alone, of_shared in zip(alone._sets, shared._sets, strict=True):
        np.testing.assert_array_equal(of_shared, of_alone)


def test_sentences_before_a_broken_byte_count(tmp_path):
    """Write a wrong last line into a file whose name does not say that it is text."""
    lines = [f"Sentence number {number}" for number in range(2_000)]
    path = tmp_path / "eng.devtest"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode() * 50 + b"caf\xe9\n")
    keys = EvaluationKeys.from_folders([tmp_path, tmp_path])
    assert marked(keys, lines).all()
    assert keys.skipped == [path]
    assert keys.names == (tmp_path.name,)


def test_a_number_with_another_sign_is_another_sentence(tmp_path):
    (tmp_path / "set.txt").write_text("It costs 1.5 euros.\n-5 degrees\n")
    keys = EvaluationKeys.from_folders([tmp_path])
    texts = ["it costs 1,5 euros", "It costs 15 euros.", "–5 degrees", "5 degrees"]
    assert marked(keys, texts).tolist() == [True, False, True, False]


def test_rows_count_once_per_set_when_both_sides_are_in_it(folders):
    keys = EvaluationKeys.from_folders(folders)
    rows = keys.contaminated_keys(
        text_keys(["Guten Tag", "neu", "neu"]), text_keys(["Good day", "how are you", "new"])
    )
    assert rows.tolist() == [True, True, False]
    assert keys.counts == {"tatoeba": 2, "other": 1}


def test_markup_of_the_evaluation_set_is_treated_as_the_training_texts(tmp_path):
    (tmp_path / "set.txt").write_text("Click <b>here</b>, %(name)s\n")
    assert not marked(EvaluationKeys.from_folders([tmp_path]), ["Click here,"]).any()
    keys = EvaluationKeys.from_folders([tmp_path], markup="strip")
    assert marked(keys, ["Click here,", "Click <b>here</b>, %(name)s"]).all()


def test_each_sentence_of_a_set_is_counted_once(tmp_path):
    (tmp_path / "a.txt").write_text("One sentence\none sentence!\nAnother one\n12\n")
    assert len(EvaluationKeys.from_folders([tmp_path, tmp_path / "a.txt"])) == 4


def test_two_folders_of_one_name_stay_apart(tmp_path):
    for parent in ("x", "y"):
        write(tmp_path / parent / "devtest" / "eng.txt", f"Sentence of {parent}\n")
    keys = EvaluationKeys.from_folders([tmp_path / "x" / "devtest", tmp_path / "y" / "devtest"])
    assert marked(keys, ["sentence of x", "sentence of y"]).all()
    assert keys.counts == {"devtest": 1, str(tmp_path / "y" / "devtest"): 1}


def test_no_set_no_contamination():
    keys = EvaluationKeys.from_folders([])
    assert not marked(keys, ["anything"]).any()


def test_wrong_folders_and_broken_files(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        EvaluationKeys.from_folders([tmp_path / "nowhere"])
    with pytest.raises(DataError, match="no sentence found"):
        EvaluationKeys.from_folders([tmp_path])
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": \n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: not JSON"):
        EvaluationKeys.from_folders([tmp_path])
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.txt").write_bytes(b"a good line\na b\xffd line\n")
    with pytest.raises(DataError, match=r"b\.txt:2"):
        EvaluationKeys.from_folders([tmp_path])

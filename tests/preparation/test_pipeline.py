import dataclasses
import errno
import os
import re
import subprocess
import sys

import pytest

from interlingua.batches.token_store import TokenStore
from interlingua.corpus.manifest import CORPUS_ENTRIES, Manifest
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError, DataError
from interlingua.preparation.config import DeduplicateConfig, SourceConfig, VocabularyConfig
from interlingua.preparation.pipeline import prepare_corpus
from interlingua.preparation.tokenizing import saved_vocabulary
from interlingua.storage.files import sha256_file, sha256_tree
from interlingua.storage.locks import exclusive
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.preparation.conftest import config_for, sentences, write_tsv


def test_the_folder_and_its_manifest(tmp_path, corpus):
    write_tsv(corpus / "de-en.more.news.tsv", [("gleich", "gleich")])
    config = config_for(tmp_path, corpus)
    manifest = prepare_corpus(config)
    folder = config.output
    names = "heldout manifest.json train valid valid_text vocabulary"
    assert sorted(path.name for path in folder.iterdir()) == names.split()
    assert manifest == Manifest.load(folder)
    assert [
        (s.name, s.license, s.read, s.dropped, s.train, s.valid, s.heldout)
        for s in manifest.sources
    ] == [
        ("news", "CC0", 301, {"identical": 1}, 270, 10, 20),
        ("talks", "unknown", 300, {}, 270, 10, 20),
    ]
    assert [
        (p.source, p.target, p.train, p.valid, p.heldout, p.dropped)
        for p in manifest.language_pairs
    ] == [
        ("deu_Latn", "eng_Latn", 270, 10, 20, {"identical": 1}),
        ("fra_Latn", "eng_Latn", 270, 10, 20, {}),
    ]
    assert manifest.dropped == {"identical": 1}
    assert manifest.sources[1].files[0].sha256 == sha256_file(corpus / "en-fr.talks.tsv")
    digest = Vocabulary.load(folder / "vocabulary").digest()
    assert manifest.vocabulary == {"size": 120, "digest": digest}
    store = TokenStore.open(folder / "train")
    assert store.counts == (270, 270)
    assert store.vocabulary_digest == manifest.vocabulary["digest"]
    assert sum(manifest.tokens.values()) == (folder / "train" / "tokens.bin").stat().st_size // 2
    assert len((folder / "heldout" / "fra-eng.tsv").read_text().splitlines()) == 20
    assert next(iter(manifest.seconds)) == "reading and cleaning"


def test_lines_that_can_not_be_read_are_skipped_and_kept(tmp_path, corpus, caplog):
    with open(corpus / "de-en.news.tsv", "ab") as file:
        file.write(b"one cell\n\xe4\tb\n")
    config = config_for(tmp_path, corpus)
    with pytest.raises(DataError, match=r"de-en\.news\.tsv:30"):
        prepare_corpus(config)
    assert not config.output.exists()
    manifest = prepare_corpus(dataclasses.replace(config, on_error="skip"))
    assert manifest.sources[0].skipped == {"unreadable line": 2}
    assert manifest.sources[0].read == 300
    kept = (config.output / "rejected_lines.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1:3] for line in kept[1:]] == [
        ["301", "found 1 column, expected 2 columns; remove tabs inside a text"],
        ["302", "not UTF-8"],
    ]
    assert caplog.messages[0] == (
        "2 lines could not be read and were left out; they are listed in"
        f" {config.output / 'rejected_lines.tsv'}"
    )


def test_a_slip_in_the_last_source_or_the_vocabulary_costs_no_work(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr("interlingua.preparation.pipeline.ingest", lambda *_: pytest.fail("reads"))
    config = config_for(tmp_path, corpus)
    before = set(tmp_path.iterdir())
    sources = (*config.sources, SourceConfig(paths=(corpus / "absent.de-en.tsv",)))
    with pytest.raises(DataError, match=r"absent\.de-en\.tsv: file not found"):
        prepare_corpus(dataclasses.replace(config, sources=sources))
    vocabulary = VocabularyConfig(path=str(tmp_path / "absent"))
    with pytest.raises(DataError, match="absent: model folder"):
        prepare_corpus(dataclasses.replace(config, vocabulary=vocabulary))
    long_name = SourceConfig(paths=(corpus / f"{'a' * 300}.de-en.tsv",))
    with pytest.raises(DataError, match=r"a\.de-en\.tsv: cannot be read"):
        prepare_corpus(dataclasses.replace(config, sources=(*config.sources, long_name)))
    long_folder = dataclasses.replace(config, decontaminate=(corpus / ("b" * 300),))
    with pytest.raises(DataError, match="b: cannot be read"):
        prepare_corpus(long_folder)
    assert set(tmp_path.iterdir()) == before


def test_an_error_of_the_disk_names_the_source_and_not_the_output(tmp_path, corpus, monkeypatch):
    def fail(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr("interlingua.preparation.sources.sha256_file", fail)
    config = config_for(tmp_path, corpus)
    with pytest.raises(DataError, match=r"\.tsv: cannot be read"):
        prepare_corpus(config)
    assert not config.output.exists()


def test_held_out_pairs_are_drawn_from_what_the_least_score_leaves(tmp_path, corpus):
    """Make every second pair wrong, with a score of 0.2.

    None of them is held out, validated or trained on.
    """
    rows = []
    for n, (english, german, _) in enumerate(sentences(300, seed=4)):
        rows.append((1.2, german, english) if n % 2 else (0.2, f"{german} wrong", english))
    write_tsv(corpus / "de-en.news.tsv", rows)
    config = config_for(tmp_path, corpus)
    source = dataclasses.replace(config.sources[0], min_score=1.0)
    scored = dataclasses.replace(config, sources=(source, config.sources[1]))
    manifest = prepare_corpus(scored)
    record = manifest.sources[0]
    assert record.dropped["below_min_score"] == manifest.dropped["below_min_score"] == 150
    kept = record.train + record.valid + record.heldout
    assert record.read == 300 == kept + sum(record.dropped.values())
    for folder in ("heldout", "valid_text"):
        text = (config.output / folder / "deu-eng.tsv").read_text(encoding="utf-8")
        assert text
        assert "wrong" not in text


def test_a_language_without_pairs_is_named(tmp_path, corpus, caplog):
    config = config_for(tmp_path, corpus, languages=("de", "en", "fr", "th"))
    prepare_corpus(config)
    assert [message for message in caplog.messages if message.startswith("language ")] == [
        "language tha_Thai: no training pairs (0 read); add a source in this language, or"
        " remove it from languages"
    ]


def test_a_source_without_pairs_is_named(tmp_path, corpus, caplog):
    (corpus / "de-en.empty.tsv").touch()
    write_tsv(corpus / "de-ru.other.tsv", [("eins", "один"), ("zwei", "два")])
    config = config_for(tmp_path, corpus, languages=("de", "fr", "en"))
    others = (
        SourceConfig(paths=(corpus / "de-en.empty.tsv",)),
        SourceConfig(paths=(corpus / "*.other.tsv",), name="x"),
    )
    prepare_corpus(dataclasses.replace(config, sources=(*config.sources, *others)))
    assert caplog.messages == [
        "source de-en.empty.tsv: no pairs; check its files",
        "source x: no pairs (skipped: 2 other language); check its files",
    ]


def test_every_pair_is_accounted_for(tmp_path, corpus):
    rows = [(german, english) for english, german, _ in sentences(50)]
    broken = [("zu lang " * 200, "short"), ("123", "456"), ("", "")]
    write_tsv(corpus / "de-en.x.talks.tsv", [*rows, *broken])
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "a.txt").write_text(rows[0][1])
    config = config_for(tmp_path, corpus, decontaminate=(tmp_path / "test",))
    capped = (config.sources[0], dataclasses.replace(config.sources[1], max_pairs=100, weight=0.5))
    manifest = prepare_corpus(dataclasses.replace(config, sources=capped))
    sources, pairs = manifest.sources, manifest.language_pairs
    for record in sources:
        kept = record.train + record.valid + record.heldout
        assert record.read == kept + sum(record.dropped.values())
    for name in ("train", "valid", "heldout"):
        assert sum(getattr(s, name) for s in sources) == sum(getattr(p, name) for p in pairs)
    assert sum(sum(p.dropped.values()) for p in pairs) == sum(manifest.dropped.values())
    assert manifest.dropped["duplicate"] == 50
    assert manifest.decontaminated == {"test": 2}
    rules = "too_long no_letters empty over_weight over_max_pairs in_evaluation_set"
    assert set(rules.split()) <= set(manifest.dropped)


def save_model(folder, corpus, size):
    """Write a model with a vocabulary of the corpus."""
    config = config_for(
        folder, corpus, output=folder / f"of-{size}", vocabulary=VocabularyConfig(size=size)
    )
    prepare_corpus(config)
    vocabulary = Vocabulary.load(config.output / "vocabulary")
    shape = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    Encoder.from_scratch(shape, vocabulary).save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize(
    "taken", [None, {}, {"trim": True}, {"trim": True, "max_size": 100}], ids=str
)
def test_the_same_config_gives_the_same_bytes(tmp_path, corpus, taken):
    settings = {"deduplicate": DeduplicateConfig(near=True)}
    if taken is not None:
        model = save_model(tmp_path, corpus, 120)
        settings["vocabulary"] = VocabularyConfig(path=str(model), **taken)
        settings |= {"long_pairs": "drop", "max_tokens": 40}
    digests = []
    for number in (1, 2, None):
        output = tmp_path / str(number)
        config = config_for(tmp_path, corpus, output=output, processes=number, **settings)
        prepare_corpus(config)
        names = ["train", "valid", "vocabulary", "heldout"]
        if taken and taken.get("trim"):
            names.append("backbone")
        digests.append([sha256_tree(config.output / name) for name in names])
    assert digests[0] == digests[1] == digests[2]


def test_a_vocabulary_that_changed_is_read_again(tmp_path, corpus):
    """Count the pieces in this process, which keeps the vocabulary meanwhile."""
    for size in (120, 90):
        model = save_model(tmp_path, corpus, size)
        vocabulary = VocabularyConfig(path=str(model), trim=True, max_size=80)
        config = config_for(tmp_path, corpus, vocabulary=vocabulary, processes=1)
        prepare_corpus(config, overwrite=True)
        kept = Vocabulary.load(config.output / "vocabulary")
        assert TokenStore.open(config.output / "train").vocabulary_digest == kept.digest()
        alone = dataclasses.replace(config, output=tmp_path / "alone")
        saved_vocabulary.cache_clear()
        prepare_corpus(alone, overwrite=True)
        assert Vocabulary.load(alone.output / "vocabulary").digest() == kept.digest()


def test_nothing_is_left_behind_by_a_failure(tmp_path, corpus):
    config = config_for(tmp_path, corpus)
    write_tsv(corpus / "en-fr.z.talks.tsv", [("a house", "une maison"), ("a", "b\tc")])
    with pytest.raises(DataError, match=r"en-fr\.z\.talks\.tsv:2"):
        prepare_corpus(config)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_old_folder_stays_unless_it_may_go(tmp_path, corpus):
    config = config_for(tmp_path, corpus)
    config.output.mkdir()
    (config.output / "precious").write_text("x")
    with pytest.raises(DataError, match="--overwrite"):
        prepare_corpus(config)
    with pytest.raises(ConfigError, match="contains other files"):
        prepare_corpus(config, overwrite=True)
    assert (config.output / "precious").exists()
    (config.output / "precious").unlink()
    prepare_corpus(config, overwrite=True)
    ours = [path for path in config.output.rglob("*") if path.is_file()]
    assert all(re.fullmatch(CORPUS_ENTRIES, str(path.relative_to(config.output))) for path in ours)
    mine = [config.output / name for name in ("precious", "train/notes.txt", "plots/a/b.svg")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    # Files of an earlier corpus that this one lacks would be taken for a part of it.
    (config.output / "backbone").mkdir()
    (config.output / "backbone" / "model.safetensors").write_text("x")
    (config.output / "heldout" / "xxx-eng.tsv").write_text("x")
    prepare_corpus(config, overwrite=True)
    assert [path.read_text() for path in mine] == ["x"] * 3
    assert not (config.output / "backbone").exists()
    assert not (config.output / "heldout" / "xxx-eng.tsv").exists()


def test_only_the_wanted_languages(tmp_path, corpus):
    manifest = prepare_corpus(config_for(tmp_path, corpus, languages=("en", "de")))
    assert manifest.languages == ("deu_Latn", "eng_Latn")
    assert manifest.sources[1].skipped == {"other language": 300}


def test_torch_is_not_needed():
    code = (
        "import sys, interlingua.preparation.pipeline, interlingua.cli.verbs.prepare; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["prepared", "link"])
def test_two_runs_do_not_make_one_folder_whatever_its_name(tmp_path, corpus, name):
    (tmp_path / "link").symlink_to(tmp_path / "prepared")
    config = config_for(tmp_path, corpus, output=tmp_path / name)
    message = f"{name} is in use .*{os.getpid()} .* --output"
    with (
        exclusive(tmp_path, name=".prepared.lock", remedy="x"),
        pytest.raises(ConfigError, match=message),
    ):
        prepare_corpus(config, overwrite=True)
    prepare_corpus(config)
    assert not list(tmp_path.glob(".prepared*"))

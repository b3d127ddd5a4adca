from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from tests.tiny import tiny_encoder


@pytest.fixture
def model(tmp_path, word_vocabulary):
    tiny_encoder(word_vocabulary).save(tmp_path / "runs" / "tiny" / "model")
    return tmp_path / "runs" / "tiny" / "model"


@pytest.fixture
def data(tmp_path, prepared):
    """A prepared corpus with a held-out folder."""
    shutil.copytree(prepared / "valid_text", tmp_path / "corpus" / "heldout")
    return tmp_path / "corpus"


def test_tables_and_result_files(done, model, data, tmp_path):
    said = done(f"evaluate {model} --data {data} -o {tmp_path}/out")
    assert all(
        word in said.out
        for word in ("tatoeba_heldout", "xsim_heldout", "German", "Russian", "all_2", "written")
    )
    files = sorted((tmp_path / "out").rglob("*.json"))
    assert [file.name.partition("-")[0] for file in files] == ["tatoeba_heldout", "xsim_heldout"]
    assert files[0].parts[-3] == "tiny-model"
    content = json.loads(files[0].read_text())
    own = content["interlingua"]
    assert (
        files[0].parent.name
        == own["provenance"]["model"]["digest"][:12]
        == Encoder.load(model).digest()[:12]
    )
    assert own["provenance"]["model"]["pooling"] == "mean"
    assert own["provenance"]["model"]["dtype"] == "float32"
    assert own["provenance"]["encoded_texts"] == 80
    assert [entry["hf_subset"] for entry in content["scores"]["test"]] == ["deu-eng", "rus-eng"]


def test_the_default_suite_has_the_mixed_pool(done, model, tmp_path, caplog):
    folder = tmp_path / "flores200_devtest"
    folder.mkdir()
    for code in ("deu_Latn", "eng_Latn", "rus_Cyrl"):
        (folder / f"{code}.txt").write_text("".join(f"{code[:2]}{n} de{n + 1}\n" for n in range(9)))
    said = done(f"evaluate {model} --data {tmp_path} -o {tmp_path}/out --quiet")
    assert "their data are missing: tatoeba" in caplog.text
    assert "accuracy mixed pool" in said.out
    names = sorted(file.name.partition("-")[0] for file in (tmp_path / "out").rglob("*.json"))
    assert names == ["mixed_pool_flores200_devtest", "xsim_flores200_devtest"]


def test_choices_reach_the_encoder_and_the_result(done, model, data, tmp_path):
    options = "--suite tatoeba --languages de --prompt 'en1 ' --pooling max --dtype bfloat16"
    said = done(f"evaluate {model} --data {data} --output {tmp_path} --name mine --quiet", options)
    assert said.err == ""
    (file,) = (tmp_path / "results" / "mine").rglob("*.json")
    own = json.loads(file.read_text())["interlingua"]
    model_info = own["provenance"]["model"]
    assert (model_info["pooling"], model_info["dtype"]) == ("max", "bfloat16")
    assert model_info["overrides"] == ["pooling=max", "dtype=bfloat16", "prompt='en1 '"]
    assert own["provenance"]["prompt"] == "en1 "
    assert own["settings"]["languages"] == ["de"]
    assert own["changed"] == ["languages"]


def test_widths_share_vectors_and_not_results(done, model, data, tmp_path):
    scores, encoded, files = {}, [], set()
    for dim in (32, 4):
        options = (
            f"--suite tatoeba --truncate-dim {dim} --cache {tmp_path}/cache --name mine --quiet"
        )
        done(f"evaluate {model} --data {data} --output {tmp_path}", options)
        new = set((tmp_path / "results" / "mine").glob("*/tatoeba*.json")) - files
        (file,) = new
        files |= new
        content = json.loads(file.read_text())
        provenance = content["interlingua"]["provenance"]
        assert (provenance["model"]["dim"], provenance["model"]["overrides"]) == (
            dim,
            [f"dim={dim}"],
        )
        scores[dim] = [entry["main_score"] for entry in content["scores"]["test"]]
        encoded.append(provenance["encoded_texts"])
    assert encoded == [80, 0]
    assert scores[4] != scores[32]


def test_cut_texts_are_one_closing_line(done, model, data, tmp_path):
    long = "en1 " * 115
    said = done(f"evaluate {model} --data {data} --output {tmp_path} --quiet --prompt '{long}'")
    own = json.loads(next(tmp_path.rglob("tatoeba*.json")).read_text())["interlingua"]
    cut = own["provenance"]["truncated_texts"]
    assert own["provenance"]["texts"] == 80 > cut > 0
    counted = ", ".join(f"{cut} of 80 texts of {task}_heldout" for task in ("tatoeba", "xsim"))
    assert said.err == f"{counted} were cut to 120 tokens\n"


def test_ctrl_c_keeps_the_vectors(done, refused, model, data, tmp_path, monkeypatch):
    def stop(self, *arguments, **options):
        raise KeyboardInterrupt

    options = f"--data {data} --output {tmp_path}/out --quiet"
    with monkeypatch.context() as patch:
        patch.setattr("interlingua.evaluation.tasks.translation.xsim.XSim.evaluate", stop)
        said = refused(f"evaluate {model}", options)
    kept = tmp_path / "out" / "results"
    assert said.out == ""
    line = (
        f"stopped; the vectors computed so far are stored in {kept}; run the same command again to"
        " resume"
    )
    assert said.err == f"interlingua: {line}\n"
    done(f"evaluate {model}", options)
    made = [
        json.loads(file.read_text())["interlingua"]["provenance"] for file in kept.rglob("*.json")
    ]
    assert [provenance["encoded_texts"] for provenance in made] == [0, 0]
    assert list(kept.rglob("unfinished*")) == []


def test_sentence_transformers_gives_the_same_scores(done, model, data, tmp_path):
    pytest.importorskip("sentence_transformers")
    scores = []
    for backend in ("interlingua", "sentence-transformers"):
        done(
            f"evaluate {model} --data {data} --output {tmp_path}/{backend} --backend {backend}",
            "--quiet",
        )
        files = sorted((tmp_path / backend).rglob("*.json"))
        scores.append([json.loads(file.read_text())["scores"] for file in files])
    assert scores[0] == scores[1]


def test_a_folder_that_is_no_model_is_one_line(refused, data, tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "notmodel").mkdir()
    said = refused(f"evaluate {tmp_path}/notmodel --backend sentence-transformers --data {data}")
    assert said.out == ""
    assert "notmodel: sentence-transformers" in said.err


def test_a_dead_endpoint_is_told_once(refused, data, caplog):
    endpoint = "--backend openai --set openai.base_url=http://127.0.0.1:9 --set openai.retries=0"
    said = refused("evaluate m", endpoint, f"--data {data} --quiet")
    assert said.err.count("returned no vectors in 1 tries") == 1
    assert [record.message for record in caplog.records] == [
        "standard: skipped, because their data are missing: mixed_pool"
    ]


def test_a_cache_and_a_budget(done, model, data, tmp_path):
    kept = f"--data {data} --output {tmp_path}/out --quiet --no-check --cache {tmp_path}/kept"
    said = done(f"evaluate {model}", kept, "--budget 0.000001s")
    assert said.out == ""
    assert said.err == "the budget of 1e-06s is used up; skipped: tatoeba: all; xsim: all\n"
    for encoded in (80, 0):
        done(f"evaluate {model}", kept, "--suite tatoeba --budget 1h")
        (file,) = (tmp_path / "out").rglob("*.json")
        assert json.loads(file.read_text())["interlingua"]["provenance"]["encoded_texts"] == encoded


def test_the_model_is_tried_first(done, model, data, tmp_path, caplog):
    options = f"--data {data} --output {tmp_path} --suite tatoeba --quiet"
    done(f"evaluate {model}", options)
    assert "mean cosine" in caplog.text
    (file,) = tmp_path.rglob("tatoeba*.json")
    assert json.loads(file.read_text())["interlingua"]["provenance"]["sanity"]["warnings"]


def test_vectors_of_a_folder(done, refused, data, tmp_path):
    texts = [
        line.split("\t")
        for path in sorted((data / "heldout").glob("*.tsv"))
        for line in path.read_text().splitlines()
    ]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "all.txt").write_text(
        "".join(f"{side}\n" for pair in texts for side in pair)
    )
    np.save(tmp_path / "mine" / "all.npy", np.repeat(np.eye(len(texts)), 2, axis=0))
    options = f"--backend vectors --data {data} --output {tmp_path} --suite tatoeba --quiet"
    said = done(f"evaluate {tmp_path}/mine", options)
    assert said.err == ""
    assert "100.0" in said.out
    (tmp_path / "mine" / "all.txt").write_text("x\n" * 2 * len(texts))
    assert "20 of 20 texts" in refused(f"evaluate {tmp_path}/mine", options).err


def test_a_function(done, data, tmp_path, monkeypatch, caplog):
    (tmp_path / "my_words.py").write_text(
        "import numpy as np\n"
        "def embed(texts):\n"
        "    rows = np.zeros((len(texts), 41))\n"
        "    for row, text in zip(rows, texts):\n"
        "        for word in text.split():\n"
        "            row[int(word[2:])] += 1\n"
        "    return rows\n"
    )
    monkeypatch.chdir(tmp_path)
    said = done(f"evaluate my_words:embed --backend function --data {data} --quiet --suite tatoeba")
    assert "(ValueError: invalid literal" in caplog.text
    assert "100.0" in said.out
    (file,) = (tmp_path / "results" / "my_words_embed" / "no_revision_available").glob(
        "tatoeba_heldout-*.json"
    )
    sanity = json.loads(file.read_text())["interlingua"]["provenance"]["sanity"]
    assert sanity == {"warnings": [record.message for record in caplog.records]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--suite tatoebe", "unknown task 'tatoebe'; did you mean 'tatoeba'?"),
        ("--languages zul", "no file for the language 'zul'; use one of: deu, rus"),
        ("--languages Klingonese", "Klingonese"),
        ("--suite ''", "the suite is empty"),
        ("--languages ,", "the list of languages is empty"),
        ("--compare hash", "unknown compare 'hash'; use one of: index, text"),
        ("--pooling sum", "unknown pooling 'sum'; use one of: cls, mean, max"),
        ("--budget 10", "budget: "),
        ("--suite beir --shard 1/2", "--shard and --devices require --cache"),
        (
            "--suite tatoeba --shard 1/2 --cache kept",
            "expected retrieval tasks, found tatoeba",
        ),
        (
            "--set onnx.file=x",
            "the backend is interlingua; remove the option, or pass --backend onnx",
        ),
        ("--data nowhere", "nowhere: folder not found; check the path"),
    ],
)
def test_slips_are_one_line(refused, monkeypatch, model, data, arguments, message):
    monkeypatch.setenv("INTERLINGUA_DATA", str(data))
    said = refused(f"evaluate {model} --quiet", arguments)
    assert said.err.startswith("interlingua: ")
    assert message in said.err


def test_no_data_and_no_model(refused, model, data, tmp_path, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    said = refused(f"evaluate {model}")
    assert said.err == (
        "interlingua: no folder of data sets is set; pass --data DIR, or set the variable"
        " INTERLINGUA_DATA\n"
    )
    (tmp_path / "empty").mkdir()
    said = refused(f"evaluate {model} --data {tmp_path}/empty")
    assert "(tatoeba, xsim, mixed_pool)" in said.err
    assert "none: model folder not found" in refused(f"evaluate {tmp_path}/none --data {data}").err

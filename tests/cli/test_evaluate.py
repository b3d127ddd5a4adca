from __future__ import annotations

import json
import shutil
from unittest.mock import ANY

import numpy as np
import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder


@pytest.fixture
def model(tmp_path, word_vocabulary):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "runs" / "tiny" / "model")
    return tmp_path / "runs" / "tiny" / "model"


@pytest.fixture
def data(tmp_path, prepared):
    """A prepared corpus with a held-out folder."""
    shutil.copytree(prepared / "valid_text", tmp_path / "corpus" / "heldout")
    return tmp_path / "corpus"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main.main(["evaluate", *map(str, arguments)])
    return stop.value.code or 0, capsys.readouterr()


def test_tables_and_result_files(capsys, model, data, tmp_path):
    code, said = run(capsys, model, "--data", data, "-o", tmp_path / "out")
    assert code == 0, said.err
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


def test_the_default_suite_has_the_mixed_pool(capsys, model, tmp_path, caplog):
    folder = tmp_path / "flores200_devtest"
    folder.mkdir()
    for code in ("deu_Latn", "eng_Latn", "rus_Cyrl"):
        (folder / f"{code}.txt").write_text("".join(f"{code[:2]}{n} de{n + 1}\n" for n in range(9)))
    code, said = run(capsys, model, "--data", tmp_path, "-o", tmp_path / "out", "--quiet")
    assert code == 0, said.err
    assert "no data for tatoeba" in caplog.text
    assert "accuracy mixed pool" in said.out
    names = sorted(file.name.partition("-")[0] for file in (tmp_path / "out").rglob("*.json"))
    assert names == ["mixed_pool_flores200_devtest", "xsim_flores200_devtest"]


def test_choices_reach_the_encoder_and_the_result(capsys, model, data, tmp_path):
    options = [
        "--suite",
        "tatoeba",
        "--languages",
        "de",
        "--prompt",
        "en1 ",
        "--pooling",
        "max",
        "--dtype",
        "bfloat16",
    ]
    code, said = run(
        capsys, model, "--data", data, "--output", tmp_path, "--name", "mine", "--quiet", *options
    )
    assert code == 0, said.err
    assert said.err == ""
    (file,) = (tmp_path / "results" / "mine").rglob("*.json")
    own = json.loads(file.read_text())["interlingua"]
    model_info = own["provenance"]["model"]
    assert (model_info["pooling"], model_info["dtype"]) == ("max", "bfloat16")
    assert model_info["overrides"] == ["pooling=max", "dtype=bfloat16", "prompt='en1 '"]
    assert own["provenance"]["prompt"] == "en1 "
    assert own["settings"]["languages"] == ["de"]
    assert own["changed"] == ["languages"]


def test_widths_share_vectors_and_not_results(capsys, model, data, tmp_path):
    scores, encoded, files = {}, [], set()
    for dim in (32, 4):
        options = [
            "--suite",
            "tatoeba",
            "--dim",
            dim,
            "--cache",
            tmp_path / "cache",
            "--name",
            "mine",
            "--quiet",
        ]
        code, said = run(capsys, model, "--data", data, "--output", tmp_path, *options)
        assert code == 0, said.err
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


def test_cut_texts_are_one_closing_line(capsys, model, data, tmp_path):
    long = "en1 " * 115
    code, said = run(
        capsys, model, "--data", data, "--output", tmp_path, "--quiet", "--prompt", long
    )
    assert code == 0
    own = json.loads(next(tmp_path.rglob("tatoeba*.json")).read_text())["interlingua"]
    cut = own["provenance"]["truncated_texts"]
    assert own["provenance"]["texts"] == 80 > cut > 0
    counted = ", ".join(f"{cut} of 80 texts of {task}_heldout" for task in ("tatoeba", "xsim"))
    assert said.err == f"{counted} were cut to 120 tokens\n"


def test_ctrl_c_keeps_the_vectors(capsys, model, data, tmp_path, monkeypatch):
    def stop(self, *arguments, **options):
        raise KeyboardInterrupt

    options = ["--data", data, "--output", tmp_path / "out", "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr("interlingua.evaluation.tasks.xsim.XSim.evaluate", stop)
        code, said = run(capsys, model, *options)
    kept = tmp_path / "out" / "results"
    assert (code, said.out) == (2, "")
    line = (
        f"stopped; the vectors so far are kept below {kept}, so the same command goes on from there"
    )
    assert said.err == f"interlingua: {line}\n"
    assert run(capsys, model, *options)[0] == 0
    made = [
        json.loads(file.read_text())["interlingua"]["provenance"] for file in kept.rglob("*.json")
    ]
    assert [provenance["encoded_texts"] for provenance in made] == [0, 0]
    assert list(kept.rglob("unfinished*")) == []


def test_sentence_transformers_gives_the_same_scores(capsys, model, data, tmp_path):
    pytest.importorskip("sentence_transformers")
    scores = []
    for backend in ("interlingua", "sentence-transformers"):
        code, said = run(
            capsys,
            model,
            "--data",
            data,
            "--output",
            tmp_path / backend,
            "--backend",
            backend,
            "--quiet",
        )
        assert code == 0, said.err
        files = sorted((tmp_path / backend).rglob("*.json"))
        scores.append([json.loads(file.read_text())["scores"] for file in files])
    assert scores[0] == scores[1]


def test_a_folder_that_is_no_model_is_one_line(capsys, data, tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "notmodel").mkdir()
    code, said = run(
        capsys, tmp_path / "notmodel", "--backend", "sentence-transformers", "--data", data
    )
    assert (code, said.out) == (2, "")
    assert "notmodel: sentence-transformers" in said.err
    assert said.err.count("\n") == 1


def test_a_dead_endpoint_is_told_once(capsys, data, caplog):
    endpoint = [
        "--backend",
        "openai",
        "--set",
        "openai.base_url=http://127.0.0.1:9",
        "--set",
        "openai.retries=0",
    ]
    code, said = run(capsys, "m", *endpoint, "--data", data, "--quiet")
    assert code == 2
    assert said.err.count("gave no vectors in 1 tries") == 1
    assert [record.message for record in caplog.records] == [
        "standard: no data for mixed_pool, left out"
    ]


def test_a_cache_and_a_budget(capsys, model, data, tmp_path):
    kept = [
        "--data",
        data,
        "--output",
        tmp_path / "out",
        "--quiet",
        "--no-check",
        "--cache",
        tmp_path / "kept",
    ]
    code, said = run(capsys, model, *kept, "--budget", "0.000001s")
    assert (code, said.out) == (0, "")
    assert said.err == "the budget of 1e-06s was used; left out: tatoeba: all; xsim: all\n"
    for encoded in (80, 0):
        assert run(capsys, model, *kept, "--suite", "tatoeba", "--budget", "1h") == (0, ANY)
        (file,) = (tmp_path / "out").rglob("*.json")
        assert json.loads(file.read_text())["interlingua"]["provenance"]["encoded_texts"] == encoded


def test_the_model_is_tried_first(capsys, model, data, tmp_path, caplog):
    options = ["--data", data, "--output", tmp_path, "--suite", "tatoeba", "--quiet"]
    assert run(capsys, model, *options)[0] == 0
    assert "mean cosine" in caplog.text
    (file,) = tmp_path.rglob("tatoeba*.json")
    assert json.loads(file.read_text())["interlingua"]["provenance"]["sanity"]["warnings"]


def test_vectors_of_a_folder(capsys, data, tmp_path):
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
    options = [
        "--backend",
        "vectors",
        "--data",
        data,
        "--output",
        tmp_path,
        "--suite",
        "tatoeba",
        "--quiet",
    ]
    code, said = run(capsys, tmp_path / "mine", *options)
    assert (code, said.err) == (0, "")
    assert "100.0" in said.out
    (tmp_path / "mine" / "all.txt").write_text("x\n" * 2 * len(texts))
    code, said = run(capsys, tmp_path / "mine", *options)
    assert code == 2
    assert "20 of 20 texts" in said.err


def test_a_function(capsys, data, tmp_path, monkeypatch, caplog):
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
    code, said = run(
        capsys,
        "my_words:embed",
        "--backend",
        "function",
        "--data",
        data,
        "--quiet",
        "--suite",
        "tatoeba",
    )
    assert code == 0, said.err
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
        (["--suite", "tatoebe"], "unknown task 'tatoebe'; did you mean 'tatoeba'?"),
        (["--languages", "zul"], "no file for the language 'zul' here; there are: deu, rus"),
        (["--languages", "Klingonese"], "Klingonese"),
        (["--suite", ""], "the suite is empty; name tasks"),
        (["--languages", ","], "no language is named"),
        (["--compare", "hash"], "compare 'hash' is unknown; there are: index, text"),
        (["--pooling", "sum"], "pooling 'sum' is unknown; there are: cls, mean, max"),
        (["--budget", "10"], "budget '10'"),
        (["--suite", "beir", "--shard", "1/2"], "--shard and --devices need --cache"),
        (
            ["--suite", "tatoeba", "--shard", "1/2", "--cache", "kept"],
            "expected retrieval tasks, got tatoeba; run without them",
        ),
        (
            ["--set", "onnx.file=x"],
            "the backend is interlingua; drop the option or say --backend onnx",
        ),
        (["--data", "nowhere"], "nowhere: no such folder; check the path"),
    ],
)
def test_slips_are_one_line(capsys, model, data, arguments, message):
    code, said = run(
        capsys, model, "--quiet", *([] if "--data" in arguments else ["--data", data]), *arguments
    )
    assert code == 2
    assert said.err.startswith("interlingua: ")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_no_data_and_no_model(capsys, model, data, tmp_path, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    code, said = run(capsys, model)
    assert (code, said.err) == (
        2,
        "interlingua: no data: give --data DIR or set INTERLINGUA_DATA\n",
    )
    (tmp_path / "empty").mkdir()
    code, said = run(capsys, model, "--data", tmp_path / "empty")
    assert code == 2
    assert "(tatoeba, xsim, mixed_pool)" in said.err
    code, said = run(capsys, tmp_path / "none", "--data", data)
    assert code == 2
    assert "no such model" in said.err

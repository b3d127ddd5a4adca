import json
import shutil

import pytest

from interlingua.training.checkpoint import checkpoints_in
from interlingua.training.template import template
from tests.methods.framed import framed_encoder

TOML = """
[data]
corpus = "{corpus}"
valid_pairs = 32
[encoder]
preset = "ems-tiny"
[method]
name = "ems"
[run]
output = "{output}"
max_steps = {steps}
global_batch_size = 16
precision = "fp32"
device = "cpu"
threads = 1
metric_for_best_model = "tatoeba_accuracy"
"""


@pytest.fixture
def config(prepared, tmp_path):
    def write(steps):
        path = tmp_path / "config.toml"
        path.write_text(
            TOML.format(corpus=prepared, output=tmp_path / "run", steps=steps), encoding="utf-8"
        )
        return path

    return write


def test_trains_and_says_what_next(done, config, tmp_path):
    said = done("train", config(10), f"--set run.max_steps=4 -o {tmp_path}/other")
    out, err = said.out, said.err
    assert "4 steps, " in out
    seen = [line.split() for line in out.splitlines() if "-eng_Latn" in line]
    assert [(row[0], row[2]) for row in seen] == [
        ("deu_Latn-eng_Latn", "40"),
        ("rus_Cyrl-eng_Latn", "24"),
    ]
    planned = next(line for line in err.splitlines() if line.startswith("language pair"))
    assert planned.split() == ["language", "pair", "pairs", "planned", "share", "passes"]
    assert f"next:  interlingua evaluate {tmp_path}/other/best --suite tatoeba,xsim" in out
    assert "step 4 | valid_loss" in err
    assert "tatoeba_accuracy" in err
    first, _, rest = done(f"train {tmp_path}/other/config.toml").out.partition("\n")
    assert first.startswith(
        f"{tmp_path}/other: already complete, nothing was trained; to start again, pass --resume"
        " never"
    )
    assert rest == out


@pytest.mark.parametrize(
    "method", ["[method]\nname", "[method]\nname = 'combination'\n[method.terms.follow]\nmethod"]
)
def test_relative_path_of_a_teacher_and_resumed(
    done, config, prepared, tmp_path, monkeypatch, method
):
    done("train", config(1), "--quiet")
    distilled = TOML.replace(
        '[method]\nname = "ems"', f'{method} = "distill"\nteacher = "../run/best"'
    )
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "distill.toml").write_text(
        distilled.format(corpus=prepared, output="../runs/distilled", steps=4)
    )
    monkeypatch.chdir(tmp_path)
    done("train experiments/distill.toml --set run.max_steps=2 --quiet")
    done("train experiments/distill.toml --set run.max_steps=2 --quiet")
    done("train runs/distilled/config.toml --resume never --quiet")


def test_quiet(done, config):
    said = done("train", config(2), "--quiet")
    assert said.out + said.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--set run.seeds=1", "did you mean 'seed'"),
        ("--set data.corpus=nowhere", "run: interlingua prepare"),
        ("--resume nowhere/step-00000001", "state.json: file not found"),
        ("--strategy dpp", "expected ddp or fsdp, found 'dpp'; did you mean 'ddp'"),
        ("--set run.metric_for_best_model=foo", "'foo' is not measured; use one of: valid_loss"),
        ("-o {this_file}", "test_train.py is a file, expected a folder; name another folder"),
        ("-o {this_file}/x", "test_train.py is a file, expected a folder; name another folder"),
        (
            "--set optimizer.learning_rate=0",
            "config.toml: optimizer.learning_rate: expected",
        ),
    ],
)
def test_users_errors_are_one_line(refused, config, arguments, message):
    arguments = arguments.format(this_file=__file__)
    assert message in refused("train", config(2), arguments).err


@pytest.fixture
def stages(tmp_path, prepared):
    run = TOML.format(corpus=prepared, output="unused", steps=4)
    (tmp_path / "one.toml").write_text(run, encoding="utf-8")
    path = tmp_path / "stages.toml"
    path.write_text(
        f'output = "{tmp_path / "all"}"\n[[stage]]\nname = "first"\nconfig = "one.toml"\n'
        '[[stage]]\nname = "second"\nconfig = "one.toml"\nset.encoder.path = "{first.best}"\n',
        encoding="utf-8",
    )
    return path


def test_stages_in_a_row(done, stages, tmp_path):
    said = done(f"train {stages} -o {tmp_path}/other --set second.run.max_steps=6")
    out, err = said.out, said.err
    assert [line.split()[0] for line in out.splitlines() if " steps, " in line] == ["4", "6"]
    assert "stage 2 of 2: second" in err
    assert (tmp_path / "other" / "second" / "model").is_dir()
    said = done(f"train {stages} -o {tmp_path}/other --set second.run.max_steps=6")
    out, err = said.out, said.err
    assert out == ""
    assert err.splitlines() == ["stage 1 of 2: first is done", "stage 2 of 2: second is done"]


def test_stages_quietly(done, stages):
    said = done(f"train {stages} --quiet")
    assert said.out + said.err == ""


def test_similarity_decides_where_there_are_scores(done, prepared, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("en1 en2\ten1 en3\t4\nen5\ten6 en7\t1\nen8\ten8\t5\n", encoding="utf-8")
    path = tmp_path / "sts.toml"
    text = TOML.format(corpus=prepared, output=tmp_path / "run", steps=4).replace('"ems"', '"sts"')
    labeled = f'[data.labeled]\npaths = ["{pairs}"]\nkind = "sts"\nvalid = ["{pairs}"]\n[encoder]'
    path.write_text(
        text.replace("[encoder]", labeled).replace("tatoeba_accuracy", "valid_spearman"),
        encoding="utf-8",
    )
    done(f"train {path}")
    records = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    found = [record["valid_spearman"] for record in records if record["kind"] == "evaluation"]
    assert found
    assert all(-1 <= value <= 1 for value in found)


def test_what_next_after_a_cross_encoder_and_after_a_retriever(done, prepared, tmp_path):
    pairs, questions = tmp_path / "pairs.tsv", tmp_path / "train.json"
    pairs.write_text("en1 en2\ten1 en3\t4\nen5\ten6 en7\t1\n" * 4, encoding="utf-8")
    asked = [
        {"question": f"en{row}", "positive_ctxs": [{"text": f"en{row} en9"}]} for row in range(20)
    ]
    questions.write_text(json.dumps(asked), encoding="utf-8")
    feeds = {
        "cross_encoder": f'[data.labeled]\npaths = ["{pairs}"]\nvalid = ["{pairs}"]\nkind ='
        f' "sts"\nmax_tokens = 20\n',
        "multilingual_ir": f'[data.questions]\npaths = ["{questions}"]\nheld_out = 4\n',
    }
    for method, section in feeds.items():
        path, output = tmp_path / f"{method}.toml", tmp_path / method
        text = TOML.format(corpus=prepared, output=output, steps=2).replace('"ems"', f'"{method}"')
        if method == "cross_encoder":
            text = text.replace(f'corpus = "{prepared}"\n', "").replace(
                'preset = "ems-tiny"', f'path = "{tmp_path}/model"'
            )
        path.write_text(
            text.replace("[encoder]", f"{section}[encoder]").replace(
                "tatoeba_accuracy", "valid_loss"
            ),
            encoding="utf-8",
        )
    framed_encoder().save(tmp_path / "model")
    last = done(f"train {tmp_path}/cross_encoder.toml").out.splitlines()[-1]
    assert last == (
        "next:  use it to score silver pairs: set silver.cross_encoder ="
        f' "{tmp_path}/cross_encoder/best" in a file of stages'
    )
    last = done(f"train {tmp_path}/multilingual_ir.toml").out.splitlines()[-1]
    assert (
        last
        == f"next:  interlingua evaluate {tmp_path}/multilingual_ir/best --suite retrieval --data"
        " DIR"
    )


def cut_to_step(run, step):
    """Leave the files of a run that was killed after the checkpoint of a step."""
    for folder in checkpoints_in(run / "checkpoints"):
        if folder.name != f"step-{step:08d}":
            shutil.rmtree(folder)
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    shutil.rmtree(run / "model")


def test_options_reach_every_stage(done, stages, tmp_path):
    done(f"train {stages} --strategy fsdp --devices 1 --quiet")
    for name in ("first", "second"):
        assert 'strategy = "fsdp"' in (tmp_path / "all" / name / "config.toml").read_text()


def test_init_writes_a_config_and_nothing_over_another(done, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done("train --init finetune mine.toml")
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == template("finetune")
    for arguments, message in (
        ("--init ems mine.toml", "mine.toml: already exists"),
        ("--init emz", "did you mean 'ems'"),
        ("", "TOML file"),
    ):
        assert message in refused("train", arguments).err

"""A wrong path and a missing package are found before torch is imported, in every verb.

One process runs all cases: there an import of torch ends the case with the name of torch.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from interlingua.cli.main import VERBS

FILES = {
    "de.txt": "eine Zeile\nzwei\n",
    "en.txt": "a line\ntwo\n",
    "news.de-en.tsv": "eine Zeile\ta line\n",
    "list.tsv": "# source, target\n\nde.txt\ten.txt\nde.txt\tabsent.txt\n",
    "gold.tsv": "de.txt\ten.txt\t\tabsent.gold\n",
    "start.toml": '[encoder]\npath = "absent"\n',
    "teacher.toml": '[method]\nname = "distill"\nteacher = "absent"\n',
    "teachers.toml": '[method]\nname = "anchor"\nteachers = ["model", "absent"]\n',
    "hub.toml": 'output = "c"\n[[sources]]\npaths = ["hf:a/b"]\n',
    "pieces.toml": (
        'output = "c"\n[vocabulary]\npath = "absent"\n[[sources]]\npaths = ["news.de-en.tsv"]\n'
    ),
    "docs.jsonl": '{"text": "a"}\n',
    "model/config.json": "{}",
    "empty/.keep": "",
    "train.toml": '[data]\ncorpus = "nowhere"\n',
    "labels.toml": '[data.labeled]\ntrain = ["absent.tsv"]\n',
    "stages.toml": 'output = "s"\n[[stage]]\nname = "a"\nconfig = "absent.toml"\n',
    "board.toml": "[run]\ntensorboard = true\n",
    "prepare.toml": 'output = "c"\n[[sources]]\npaths = ["absent.de-en.tsv"]\n',
}
WRONG = """
documents absent . -o m.tmx
documents . absent -o m.tmx
documents absent -o m.tmx
look absent.tsv
look absent
prepare absent.toml
prepare prepare.toml
prepare pieces.toml
train absent.toml
train start.toml
train teacher.toml
train teachers.toml
train train.toml : nowhere
train labels.toml
train stages.toml
evaluate model --data absent
evaluate absent --data .
evaluate empty --data . : empty
compare absent.json
analyse model --data absent
analyse absent --data .
analyse model absent --data .
embed absent.txt -o v.npy
embed model absent.txt -o v.npy
embed model absent-*.txt -o v.npy
embed absent de.txt -o v.npy
embed empty de.txt -o v.npy : empty
embed absent de.txt --backend sentence-transformers -o v.npy
embed absent de.txt --backend onnx -o v.npy
embed absent de.txt --backend vectors -o v.npy
embed absent de.txt --backend mapped -o v.npy
embed absent:f de.txt --backend function -o v.npy
mine absent.txt en.txt -o p.tsv
mine de.txt absent.txt -o p.tsv
mine absent de.txt en.txt -o p.tsv
mine model de.txt en.txt -o p.tsv --source-vectors absent.npy
mine model de.txt en.txt -o p.tsv --documents absent.tsv
mine model de.txt en.txt -o p.tsv --calibration absent.json --precision 0.9
mine model de.txt en.txt -o p.tsv --gold absent.tsv
calibrate de.txt absent.txt -o c.json
calibrate model de.txt en.txt -o c.json --parallel absent.tsv
calibrate model de.txt en.txt -o c.json --labels absent.tsv
calibrate model de.txt en.txt -o c.json --gold absent.tsv
score absent.de-en.tsv -o o.tsv
score absent news.de-en.tsv -o o.tsv
score model absent -o o.tsv
score model de.txt,absent.txt -o o.tsv
score model absent.foo --input-format tsv -o o.tsv
score model news.de-en.tsv -o o.tsv --calibration absent.json
score model news.de-en.tsv --learn c.json --labels absent.tsv
score model news.de-en.tsv --learn c.json --parallel absent.tsv
align absent.txt en.txt
align absent de.txt en.txt
align model de.txt absent.txt
align model --list absent.tsv -o links
align model --list list.tsv -o links
align model --list list.tsv
align model --list gold.tsv -o links
align --list list.tsv -o links
align model de.txt en.txt --gold absent.tsv
debias absent de.txt -o d
debias model absent.txt -o d
debias --vectors absent.npy --labels de.txt -o d
debias --vectors de.txt --labels absent.txt -o d
debias --vectors de.txt --map absent -o d
average absent absent -o a
average model model --pairs absent.tsv -o a
average model model --sts absent.tsv -o a
extend absent --pairs news.de-en.tsv --lang de -o e
extend model --pairs absent.tsv --lang de -o e
extend model --pairs news.de-en.tsv --lang de --replay absent.txt -o e
extend model --pairs news.de-en.tsv --lang de --check absent -o e
extend model --pairs news.de-en.tsv --lang de --sts absent.tsv -o e
export absent -o x
export model -o x --vocabulary-of absent.txt
export model -o x --verify-texts absent.txt
export model -o x --results absent.json
export model -o absent --verify-only
export model -o x --static --corpus absent
index build absent de.txt -o i
index build model absent.txt -o i
index build absent.txt -o i
index build model de.txt --map absent -o i
index add absent de.txt
index delete absent 3
search absent hello
search empty hello : empty
serve absent
serve model --index absent
serve model --calibration absent.json
info absent
info empty : empty
quickstart --catalogues absent --no-fetch
"""
"""Command lines, each followed by the text that the error must name; default: ``absent``."""
MISSING = """
py3langid mine model de.txt en.txt -o p.tsv --check language
py3langid score model news.de-en.tsv -o o.tsv --drop language
datasets prepare hub.toml
datasets score model hf:a/b:de-en -o o.tsv
datasets score model a.parquet -o o.tsv
datasets calibrate model de.txt en.txt -o c.json --parallel hf:a/b
datasets extend model --pairs hf:a/b --lang de -o e
datasets average model model --pairs hf:a/b -o a
faiss mine model de.txt en.txt -o p.tsv --approximate ivf
ray mine model de.txt en.txt -o p.tsv --ray local
ray embed model de.txt -o v.npy --ray local
pyarrow embed model de.txt -o v.parquet
openpyxl embed model t.xlsx -o v.npy
openpyxl mine model de.txt en.txt -o p.xlsx
polib score model news.de-en.tsv -o o.po
polib score model news.de-en.tsv -o o.mo
zstandard align model de.txt en.txt.zst
zstandard score model news.de-en.tsv.zst -o o.tsv
s3fs embed model s3://bucket/de.txt -o v.npy
sentence_transformers evaluate model --data . --backend sentence-transformers
onnxruntime analyse model --data . --backend onnx
mteb evaluate model --data . --suite mteb:STS17
ir_measures evaluate model --data . --suite beir
ir_measures evaluate model --data . --suite retrieval
sklearn evaluate model --data . --suite tatoeba,few_shot_sib200
sklearn evaluate model --data . --suite senteval
sentence_transformers export model -o x
onnx export model -o x --onnx
onnxruntime export model -o x --int8
openvino export model -o x --openvino
gguf export model -o x --gguf
xllamacpp export model -o x --gguf
lancedb index build model de.txt -o i
lancedb index add i de.txt
lancedb search i hello
lancedb serve model --index i
fastapi serve model
uvicorn serve model
tensorboard train board.toml
sklearn quickstart --no-fetch
"""
"""Packages that are not there, each with a command line that needs it."""
SCRIPT = """
    import contextlib, io, json, shlex, sys

    class Refused(BaseException):
        pass

    class NoTorch:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise Refused

    sys.meta_path.insert(0, NoTorch())
    from interlingua.cli.main import main

    def told(package, line):
        before = sys.modules.get(package)
        if package:
            sys.modules[package] = None
        error = io.StringIO()
        try:
            with contextlib.redirect_stderr(error):
                main(shlex.split(line))
        except SystemExit as stop:
            return [stop.code, error.getvalue()]
        except Refused:
            return [None, "torch is imported"]
        finally:
            sys.modules.pop(package, None)
            if before is not None:
                sys.modules[package] = before

    cases = json.load(sys.stdin)
    print(json.dumps([told(package, line) for package, line in cases]))
"""


def _lines(text):
    return [line for line in text.splitlines() if line]


CASES = [(None, line.partition(" : ")[0]) for line in _lines(WRONG)]
CASES += [tuple(line.split(" ", 1)) for line in _lines(MISSING)]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Command line -> exit code and message, without an importable torch."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "en.txt.zst").write_bytes(b"")
    (folder / "news.de-en.tsv.zst").write_bytes(b"")
    (folder / "t.xlsx").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "INTERLINGUA_DATA": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
    return dict(zip(CASES, json.loads(done.stdout), strict=True)), written


@pytest.mark.parametrize("line", _lines(WRONG))
def test_a_wrong_path_is_found_before_torch_is_imported(told, line):
    command, _, named = line.partition(" : ")
    code, message = told[0][None, command]
    assert (code, message.count("\n")) == (2, 1), message
    assert (named or "absent") in message


@pytest.mark.parametrize("line", _lines(MISSING))
def test_a_missing_package_is_found_before_torch_is_imported(told, line):
    package, command = line.split(" ", 1)
    code, message = told[0][package, command]
    assert (code, message.count("\n")) == (2, 1), message
    assert re.search(r"pip install .*'", message)


def test_nothing_is_left_behind_by_a_command_with_a_wrong_path(told):
    given = {name.split("/")[0] for name in FILES} | {"en.txt.zst", "news.de-en.tsv.zst", "t.xlsx"}
    assert set(told[1]) <= given


def test_every_verb_has_a_wrong_path_here():
    assert {line.split()[0] for line in _lines(WRONG)} == set(VERBS)

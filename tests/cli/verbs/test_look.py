from __future__ import annotations

import json

import interlingua
from tests.verbs.test_look import folder as folder


def test_it_prints_what_the_function_returns(done, folder):
    printed = done("look news.de-en.tsv book.de.txt --quiet").out
    assert printed.splitlines() == interlingua.look(["news.de-en.tsv", "book.de.txt"]).lines


def test_json_is_a_line_for_each_file(done, folder):
    lines = done("look news.de-en.tsv book.de.txt --json --quiet").out.splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["units"] for record in records] == [120, 120]
    assert records[0]["sides"][0]["language"] == "deu_Latn"
    assert records[0]["faults"] == []


def test_a_file_that_is_not_there_is_one_line_and_exit_2(refused, folder):
    assert "missing.tsv" in refused("look missing.tsv").err

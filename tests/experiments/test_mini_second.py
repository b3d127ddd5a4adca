"""experiments/mini/second_data.py and second.py: the data and the steps of the second edition."""

from __future__ import annotations

import json
import sys

import pytest

from interlingua.corpus.formats.questions import read_questions


@pytest.fixture(scope="module")
def data_script(mini_script):
    return mini_script("second_data")


@pytest.fixture(scope="module")
def script(mini_script):
    return mini_script("second")


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def sets(tmp_path):
    """Questions of which some are withheld, a manual in two languages, and scored pairs."""
    data = tmp_path / "data"
    wikipedia = data / "qa_wikipedia"
    write(wikipedia / "en.passages.tsv", ("0", "Sea", "Pirá's abstract."), ("1", "Bell", "A bell."))
    write(wikipedia / "pt.passages.tsv", ("0", "Mar", "O resumo."), ("7", "Sino", "Um sino."))
    write(wikipedia / "en.questions.tsv", ("en", "0", "Whose?"), ("en", "1", "What rings?"))
    write(wikipedia / "sw.questions.tsv", ("en", "1", "Nini inalia?"), ("en", "9", "Nini?"))
    squad = data / "qa_squad_fi_en"
    for language in ("en", "fi"):
        rows = [(str(row), "", f"{language} passage {row}") for row in range(60)]
        write(squad / f"{language}.passages.tsv", *rows)
    write(squad / "fi.questions.tsv", *[("fi", str(row), f"Missä {row}?") for row in range(60)])
    for language in ("de", "en", "pt_BR"):
        rows = [
            (str(row), f"{language} title {row}", f"heading {row}", f"{language} text {row}")
            for row in range(30)
        ]
        write(data / "help_mate" / f"{language}.tsv", *rows, ("99", "", "short", "text"))
    write(
        data / "scored_pairs" / "sts_jsts.ja.tsv", *[("3.5", f"a{row}", "b") for row in range(99)]
    )
    write(tmp_path / "own" / "train.tsv", ("5.0", "one", "two"))
    return tmp_path


def made(data_script, sets, *options):
    out = sets / "out"
    own = str(sets / "own")
    data_script.main([str(sets / "data"), "--scored", own, "-o", str(out), *options])
    return out, list(read_questions(out / "questions.json"))


def test_questions_of_sets_and_headings_of_manuals(data_script, sets, capsys):
    out, questions = made(data_script, sets)
    by_text = {question.text: question for question in questions}
    # Withheld: ids of both languages. Not there: a passage that no file has.
    assert "Whose?" not in by_text
    assert "Nini?" not in by_text
    swahili = by_text["Nini inalia?"]
    assert swahili.language == "swh_Latn"
    assert [(one.text, one.title, one.language) for one in swahili.positives] == [
        ("A bell.", "", "eng_Latn")
    ]
    heading = by_text["de title 3: heading 3"]
    assert heading.positives[0].text.endswith("text 3")
    assert by_text["pt_BR title 3: heading 3"].language == "por_Latn"
    assert not any(question.text == "short" for question in questions)
    assert "stories: not in" in capsys.readouterr().out
    sources = json.loads((out / "sources.json").read_text("utf-8"))
    counts = {source["name"]: source["questions"] for source in sources}
    assert counts == {"qa_wikipedia": 2, "qa_squad_fi_en": 60, "help_mate": 90}


def test_all_headings_and_a_share_of_finnish_questions_cross_languages(data_script, sets):
    _, questions = made(data_script, sets)
    for language, least, most in (("fin_Latn", 0.1, 0.6), ("deu_Latn", 1.0, 1.0)):
        asked = [one for one in questions if one.language == language]
        across = sum(one.positives[0].language != language for one in asked)
        assert least <= across / len(asked) <= most
    alone = ("1", "A long title", "", "A passage of one language")
    write(sets / "data" / "stories" / "de.tsv", alone)
    out, again = made(data_script, sets, "--headings", "7")
    assert sum(one.text.startswith(("de title", "en title", "pt_BR")) for one in again) == 7
    assert len(again) == len(questions) - 90 + 7
    sources = json.loads((out / "sources.json").read_text("utf-8"))
    assert "stories" not in {source["name"] for source in sources}


def test_tydi_s_english_questions_are_among_them(data_script, sets):
    folder = sets / "data" / "tydiqa_goldp"
    write(folder / "en.train.questions.tsv", ("q0", "1", "Who rings?", "Ann"))
    write(folder / "en.train.passages.txt", ("Nobody.",), ("Ann rings.",))
    _, questions = made(data_script, sets)
    (found,) = [one for one in questions if one.text == "Who rings?"]
    assert (found.language, found.positives[0].text) == ("eng_Latn", "Ann rings.")


def test_what_is_left_out_by_option(data_script, sets):
    _, questions = made(data_script, sets, "--without-machine-translated", "--with-withheld")
    assert "Whose?" in {question.text for question in questions}
    assert "fin_Latn" not in {question.language for question in questions}
    _, few = made(data_script, sets, "--most", "8")
    assert sum(question.language == "fin_Latn" for question in few) == 8
    assert sum(question.language == "deu_Latn" for question in few) == 2  # a manual's quarter


def test_scored_pairs_are_split(data_script, sets):
    out, _ = made(data_script, sets)
    train, development = (
        (out / name).read_text("utf-8").splitlines() for name in ("scored.tsv", "scored_dev.tsv")
    )
    assert "5.0\tone\ttwo" in train
    assert len(train) + len(development) == 100
    assert set(train).isdisjoint(development)


def test_triplets_are_entailed_sentences_with_contradictions(data_script, sets):
    premises = sets / "data" / "scored_pairs" / "nli_klue.ko.tsv"
    write(
        premises,
        *[("entailment", "p", "follows"), ("neutral", "p", "maybe"), ("contradiction", "p", "no")],
        *[("entailment", "p", "too"), ("contradiction", "q", "never"), ("entailment", "r", "so")],
        ("a row of another shape",),
    )
    # STS17 was drawn from SNLI, so these premises are no triplets.
    write(premises.with_name("nli_snli.en.tsv"), ("entailment", "caption", "a caption"))
    out, _ = made(data_script, sets)
    triplets = list(read_questions(out / "triplets.json"))
    found = sorted(
        (one.text, *(passage.text for passage in (*one.positives, *one.hard_negatives)))
        for one in triplets
    )
    assert found == [("p", "follows", "no"), ("p", "too", "no"), ("r", "so")]
    assert {one.language for one in triplets} == {"kor_Hang"}


def test_texts_of_test_sets_are_left_out(data_script, sets, capsys):
    """Compare without case and punctuation: a question, a passage and a scored pair."""
    data = sets / "data"
    write(data / "tydiqa_goldp" / "fi.dev.questions.tsv", ("q", "0", "missä 3", "x"))
    (data / "xquad_r").mkdir(parents=True)
    (data / "xquad_r" / "en.json").write_text(json.dumps({"data": ["A bell!"]}), "utf-8")
    write(data / "sts17" / "track5.en-en.tsv", ("5.0", "One.", "three"))
    out, questions = made(data_script, sets)
    texts = {question.text for question in questions}
    assert not texts & {"Missä 3?", "What rings?", "Nini inalia?"}
    assert "Missä 4?" in texts
    assert "one" not in (out / "scored.tsv").read_text("utf-8")
    shown = capsys.readouterr().out
    assert "qa_squad_fi_en: 1 with" in shown
    assert "qa_wikipedia: 2 with" in shown
    assert "scored pairs: 1 with" in shown


def test_the_number_of_questions_is_passed_on(script, tmp_path):
    options = ("--most", "9", "--headings", "7")
    steps = script.all_steps(tmp_path, tmp_path, toy=False, overrides=(), counts=options)
    commands = {step.name: step.command for step in steps}
    assert commands["questions"][-4:] == options


def test_no_data_is_one_line(data_script, tmp_path):
    with pytest.raises(SystemExit, match=r"docs/data.md"):
        data_script.main([str(tmp_path), "--scored", str(tmp_path), "-o", str(tmp_path / "out")])


def test_an_estimate_does_nothing(script, tmp_path, capsys):
    work = tmp_path / "work"
    (work / "models" / "second-start").mkdir(parents=True)
    script.main([str(tmp_path), "--work", str(work), "--estimate", "--set", "run.max_steps=100"])
    shown = capsys.readouterr().out
    names = [line.split()[0] for line in shown.splitlines()[1:-1]]
    assert names == [
        *("teacher", "edition", "start", "stock", "partner", "scores", "questions", "prepare"),
        *("rank", "debias", "train", "first", "spread", "average", "ship"),
    ]
    states = {line.split()[0]: "done" in line for line in shown.splitlines()[1:-1]}
    assert [name for name, is_done in states.items() if is_done] == ["start"]
    assert not (work / "data").exists()


@pytest.mark.parametrize("toy", [True, False])
def test_a_step_reads_what_an_earlier_one_wrote(script, tmp_path, toy):
    work = tmp_path / "work"
    steps = list(script.all_steps(tmp_path / "data", work, toy=toy, overrides=()))
    # A step writes further files to the same folder; the configurations are copied first.
    made = {work / "data/second", work / "experiments/mini"}
    for step in steps:
        for part in step.command:
            path = str(part)
            if path.startswith(str(work)) and not str(step.output).startswith(path):
                assert any(path.startswith(str(place)) for place in made), (step.name, path)
        made |= {step.output, step.output.parent}
    by_name = {step.name: [str(part) for part in step.command] for step in steps}
    models = work / "models"
    parts = by_name["average"]
    partner = models / ("second-start" if toy else "second-partner")
    expected = [partner, models / "second-start", work / "runs/second_spread/model"]
    assert parts[3:8] == ["average", *map(str, expected), "--weights"]
    assert parts[8] == "0.45,0.1,0.45"
    before = by_name["ship"][by_name["ship"].index("--before") + 1]
    shipped = script.ROOT / "models/mini/src/interlingua_mini/model"
    assert before == str(shipped if toy else models / "mini-first-edition")


def test_costs_follow_the_steps(script, tmp_path):
    by_steps = {}
    for count in (600, 6_000):
        changes = [f"run.max_steps={count}"]
        steps = list(script.all_steps(tmp_path, tmp_path, toy=False, overrides=changes))
        trained = [step for step in steps if step.name in ("train", "spread")]
        by_steps[count] = sum(script.minutes_of(step.cost, "two CPU cores") for step in trained)
    assert by_steps[6_000] == pytest.approx(10 * by_steps[600])
    tokens = [
        script.tokens_of(script.HERE / "second.toml", changes)
        for changes in ([], ["run.global_batch_size=512"], ["data.questions.batch_size=1_28"])
    ]
    # 240 steps; 2 * 416 further sentences, and 96 further questions with two passages each
    assert tokens[1] - tokens[0] == 240 * 2 * 416 * script.SENTENCE_TOKENS
    assert tokens[2] - tokens[0] == 240 * 96 * (script.SENTENCE_TOKENS + 2 * script.PASSAGE_TOKENS)
    steps = {
        step.name: step for step in script.all_steps(tmp_path, tmp_path, toy=False, overrides=())
    }
    assert 10 < script.minutes_of(steps["spread"].cost, "two CPU cores") < 60


def test_done_steps_are_not_done_again_and_a_failure_ends_it(script, tmp_path):
    def step(name, code):
        command = (sys.executable, "-c", f"open({str(tmp_path / name)!r}, 'a').write('x'); {code}")
        return script.Step(name, tmp_path / name, command, script.Cost())

    steps = [step("one", ""), step("two", "raise SystemExit(3)"), step("three", "")]
    with pytest.raises(SystemExit, match=r"two.*3"):
        script.run_steps(steps, tmp_path, tmp_path / "work")
    assert not (tmp_path / "three").exists()
    (tmp_path / "two").unlink()
    steps[1] = step("two", "")
    script.run_steps(steps, tmp_path, tmp_path / "work")
    assert [(tmp_path / name).read_text() for name in ("one", "two", "three")] == ["x", "x", "x"]
    with pytest.raises(SystemExit, match="until"):
        script.main([str(tmp_path), "--estimate", "--until", "four"])


def test_toy_data_are_the_first_lines_and_links(script, tmp_path):
    data = tmp_path / "data"
    write(data / "stories" / "de.tsv", *[(str(row), "text") for row in range(500)])
    write(data / "sts17" / "track1.ar-ar.tsv", ("1", "a", "b"))
    toy = script.toy_data(data, tmp_path / "toy")
    lines = (toy / "stories" / "de.tsv").read_text("utf-8").splitlines()
    assert len(lines) == script.TOY_LINES
    assert (toy / "sts17").is_symlink()


def test_passages_for_development_are_in_no_training_language(data_script, sets, monkeypatch):
    monkeypatch.setattr(data_script, "DEVELOPMENT_SETS", {"help_mate": 3})
    out, questions = made(data_script, sets)
    held_out = list(read_questions(out / "questions_dev.json"))
    texts = {passage.text for question in held_out for passage in question.positives}
    assert len(held_out) > 10
    assert {one.language for one in held_out} > {"deu_Latn"}
    assert not texts & {passage.text for one in questions for passage in one.positives}
    # All versions of a passage are right.
    assert all(len(question.positives) > 1 for question in held_out)

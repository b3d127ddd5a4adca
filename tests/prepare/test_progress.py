from interlingua.prepare.progress import Stages, stage_bars


def test_silence_still_keeps_the_time():
    with stage_bars(False) as progress:
        stage = progress.stage("reading", total=2, unit="pairs")
        stage.advance()
        stage.count(5)
        stage.done()
    assert isinstance(progress, Stages)
    assert list(progress.seconds) == ["reading"]
    assert progress.seconds["reading"] >= 0


def test_bars_show_what_was_done(capsys):
    with stage_bars(True) as progress:
        stage = progress.stage("reading", total=2, unit="pairs")
        stage.count(1234)
        stage.count(1)
        stage.advance(2)
        stage.done()
    captured = capsys.readouterr()
    assert "reading" in captured.err
    assert "1,235 pairs" in captured.err
    assert captured.out == ""

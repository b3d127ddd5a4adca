"""Passages and judged questions of a public set, to measure an index of all of its languages.

    python benchmarks/search_pools.py xquad_r DATA/xquad_r -o pool --questions 50
    interlingua index build mini pool/corpus.jsonl -o index
    interlingua evaluate index --data pool
    interlingua evaluate index --data pool --set index.pool=own

The folder gets BEIR's files, with the language of each question and passage. In XQuAD and XQuAD-R
a question is answered in every language, in TyDi GoldP in its own.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from interlingua.evaluation.tasks.retrieval.retrieval import TyDiGoldP, XQuAD, XQuADR

TASKS = {"xquad": XQuAD, "xquad_r": XQuADR, "tydi_goldp": TyDiGoldP}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("data", type=Path, help="folder of the set")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--questions", type=int, help="of each language, drawn with seed 0")
    parser.add_argument("--languages", help="such as de,en; all by default")
    options = parser.parse_args()
    task = TASKS[options.task](
        languages=options.languages.split(",") if options.languages else None
    )
    files = task.files(options.data)
    sets = {name: files[name]() for name in task.chosen(files, options.data)}
    (options.output / "qrels").mkdir(parents=True, exist_ok=True)
    passages = []
    questions = []
    judgments = ["query-id\tcorpus-id\tscore"]
    for language, one in sets.items():
        for passage in one.passages():
            name = f"{language}/{passage.id}"
            passages.append({"_id": name, "text": passage.text, "language": language})
        names = list(one.queries)
        if options.questions is not None:
            names = random.Random(0).sample(names, min(options.questions, len(names)))
        answered_in = sets if task.parallel else {language: one}
        for name in names:
            record = {"_id": f"{language}/{name}", "text": one.queries[name], "language": language}
            questions.append(record)
            for other, theirs in answered_in.items():
                for passage, grade in theirs.qrels.get(name, {}).items():
                    judgments.append(f"{language}/{name}\t{other}/{passage}\t{grade}")
    for file, records in (("corpus", passages), ("queries", questions)):
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        path = options.output / f"{file}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    path = options.output / "qrels" / "test.tsv"
    path.write_text("\n".join(judgments) + "\n", encoding="utf-8")
    print(f"{len(passages):,} passages, {len(questions):,} questions, {len(sets)} languages")


if __name__ == "__main__":
    main()

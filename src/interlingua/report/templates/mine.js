// Judging the pairs of a page by two keys, and saving pairs or judgments as files. Nothing leaves the browser.
"use strict";
(function () {
  const pairs = Array.from(document.querySelectorAll(".pair"));
  const judgments = new Map();

  // The form that interlingua reads: each pair in one line, a tab between the texts.
  function oneLine(text) {
    return text.replace(/\s+/g, " ").trim();
  }
  function textsOf(pair) {
    return Array.from(pair.querySelectorAll("p[dir]"), (text) => oneLine(text.textContent));
  }
  function keyOf(pair) {
    return textsOf(pair).join("\t");
  }

  function show() {
    for (const pair of pairs) {
      const judgment = judgments.get(keyOf(pair));
      pair.classList.toggle("right", judgment === "1");
      pair.classList.toggle("wrong", judgment === "0");
    }
    const all = Array.from(judgments.values());
    const right = all.filter((judgment) => judgment === "1").length;
    document.getElementById("judged").textContent = right + " right, " + (all.length - right) + " wrong";
  }

  // The same key again takes a judgment back.
  function judge(pair, judgment) {
    const key = keyOf(pair);
    const isTakenBack = judgments.get(key) === judgment;
    if (isTakenBack) {
      judgments.delete(key);
    } else {
      judgments.set(key, judgment);
    }
    show();
    const next = pairs.slice(pairs.indexOf(pair) + 1).find((other) => !judgments.has(keyOf(other)));
    if (next && !isTakenBack) {
      next.focus();
    }
  }

  function save(name, lines) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/tab-separated-values" }));
    link.download = name;
    link.click();
  }

  function judgedLines() {
    return Array.from(judgments, ([key, judgment]) => judgment + "\t" + key);
  }

  function pairLines() {
    const lines = ["kind\tscore\tsource\ttarget\treasons"];
    for (const pair of pairs) {
      lines.push([pair.dataset.kind, pair.dataset.score, keyOf(pair), pair.dataset.reasons].join("\t"));
    }
    return lines;
  }

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.key !== "1" && event.key !== "0")) {
      return;
    }
    const focused = document.activeElement && document.activeElement.closest(".pair");
    const pair = focused || pairs.find((other) => !judgments.has(keyOf(other)));
    if (pair) {
      judge(pair, event.key);
    }
  });
  for (const pair of pairs) {
    for (const button of pair.querySelectorAll("button")) {
      button.addEventListener("click", () => judge(pair, button.value));
    }
  }
  document.getElementById("save-judged").addEventListener("click", () => save("judged.tsv", judgedLines()));
  document.getElementById("save-pairs").addEventListener("click", () => save("pairs.tsv", pairLines()));
})();

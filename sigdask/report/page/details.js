"use strict";
(() => {
  const held = sigdask.data("details");
  if (!held) return;
  const { make } = sigdask;
  const WIDTH = 420, HEIGHT = 210, LEFT = 44, RIGHT = 12, TOP = 18, BOTTOM = 34, SHORT = 28;
  const panel = document.getElementById("detail");
  const chosen = document.getElementById("detail-chosen");

  const count = (n) => n.toLocaleString("en-US");
  const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e-5 && Math.abs(x) < 1e6 ? String(+x.toPrecision(3)).replace("-", "−") : x.toExponential(1));
  const sign = (x) => (x > 0 ? "+" : x < 0 ? "−" : "") + short(Math.abs(x));
  /** What is subtracted, by its names if there is room for them. */
  const minus = (own) => (`${own.a}${own.b}`.length < 40 ? `${own.a} − ${own.b}` : "A − B");
  const text = (x, y, words, kind) => make("text", { x, y, class: kind }, words);
  const table = (heads, rows) =>
    make("details", {}, make("summary", {}, "As numbers"), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The numbers of this picture" },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
        make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { class: "n" }, String(cell)))))))));
  const figure = (title, label, drawn, words, numbers) =>
    make("figure", {}, make("h4", {}, title),
      make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...drawn),
      make("figcaption", {}, ...words), numbers);

  /** Round places for an axis between two numbers. */
  const ticks = (low, high) => {
    const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= rough);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, k) => (first + k) * step);
  };

  /** Bars over numbers; lines and their words at some of them. */
  const bars = (own, kinds, marks) => {
    const { low, width, n, marked } = own;
    const ends = [low, low + width * n.length, ...marks.map((m) => m.at)];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    const x = (value) => LEFT + ((value - least) / (most - least || 1)) * (WIDTH - LEFT - RIGHT);
    const top = Math.max(...n), bottom = HEIGHT - BOTTOM;
    const high = (k) => (k / top) * (bottom - TOP);
    const drawn = [];
    n.forEach((all, k) => {
      const left = x(low + k * width), wide = Math.max(x(low + (k + 1) * width) - left - 0.6, 0.8);
      const some = marked[k];
      const box = (kind, from, size) => size && drawn.push(make("rect", { class: kind, x: left, width: wide, y: bottom - high(from) - Math.max(high(size), 1), height: Math.max(high(size), 1) }));
      box(kinds[1], 0, some);
      box(kinds[0], some, all - some);
    });
    drawn.push(make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: bottom, y2: bottom }));
    for (const at of ticks(least, most)) {
      drawn.push(make("line", { x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4 }), text(x(at), bottom + 17, short(at), x(at) > WIDTH - 2 * RIGHT ? "end" : "middle"));
    }
    drawn.push(text(LEFT - 6, TOP + 4, count(top), "end"), text(LEFT - 6, bottom, "0", "end"));
    for (const mark of marks) {
      const side = x(mark.at) > WIDTH / 2 ? "end" : "";
      drawn.push(make("line", { class: mark.kind, x1: x(mark.at), x2: x(mark.at), y1: TOP - 6, y2: bottom }));
      if (mark.words) drawn.push(text(x(mark.at) + (side ? -4 : 4), TOP - 6, mark.words, side));
    }
    return drawn;
  };

  const barRows = ({ low, width, n, marked }) =>
    n.map((all, k) => [short(low + k * width), short(low + (k + 1) * width), count(all), count(marked[k])]).filter((_, k) => n[k]);

  const nullPicture = (own) => {
    const { observed, words } = own.null;
    const marks = [{ at: observed, kind: "observed", words: `observed ${sign(observed)}` }];
    if (own.alternative === "two-sided" && observed) marks.push({ at: -observed, kind: "mirror", words: "" });
    return figure("Differences that chance alone gives", words, [...bars(own.null.bars, ["bar", "tail"], marks), text(WIDTH / 2, HEIGHT - 2, `${minus(own)}, outputs swapped at random`, "middle")],
      [words], table(["from", "to", "swaps", "as extreme"], barRows(own.null.bars)));
  };

  const sharesPicture = (own) => {
    const [forA, alike, forB] = own.shares.counts, all = forA + alike + forB;
    const better = (raises) => (raises === own.higher ? own.a : own.b);
    const words = [
      make("span", { class: "swatch for-a", "aria-hidden": "true" }), `${count(forA)} of ${count(all)} units favour ${better(true)}, `,
      make("span", { class: "swatch for-b", "aria-hidden": "true" }), `${count(forB)} ${better(false)}, ${count(alike)} neither. `,
      own.shares.add_up ? "A contribution is what a unit adds to the difference. All contributions add up to it."
        : "A contribution is half of what the difference loses if this unit is swapped. The score is not a mean, so contributions do not add up to the difference.",
    ];
    const label = `Contributions of units: ${count(forA)} favour ${better(true)}, ${count(forB)} ${better(false)}, ${count(alike)} neither`;
    const drawn = own.shares.bars ? [...bars(own.shares.bars, ["for-a", "for-b"], [{ at: 0, kind: "", words: "" }]), text(WIDTH / 2, HEIGHT - 2, `contribution to ${minus(own)}`, "middle")] : [];
    const numbers = own.shares.bars && table(["from", "to", "units"], barRows(own.shares.bars).map((row) => row.slice(0, 3)));
    return figure("Differences by unit", label, drawn, words, numbers);
  };

  /** Words of a text, those that another text lacks (in order) marked. */
  const against = (words, others) => {
    const [a, b] = [words.split(/(\s+)/), others.split(/\s+/)];
    const own = a.filter((_, k) => k % 2 === 0);
    const long = Array.from({ length: own.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = own.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) long[i][j] = own[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    }
    const found = [];
    for (let i = 0, j = 0; i < own.length; ) {
      if (j < b.length && own[i] === b[j]) { found.push(own[i++]); j++; }
      else if (j < b.length && long[i][j + 1] > long[i + 1][j]) { j++; continue; }
      else found.push(make("mark", {}, own[i++]));
      if (i < own.length) found.push(a[2 * i - 1]);
    }
    return found;
  };

  const item = (own, [name, asked, gold, a, b]) => {
    const at = (place) => (place === null ? null : held.texts[place]);
    const [given, other] = [at(a), at(b)];
    const marked = given !== null && other !== null && [given, other].some((words) => /\S\s+\S/.test(words));
    const rows = [...(asked === null ? [] : [[own.asked, at(asked)]]), ...gold.map((place, k) => [own.gold + (gold.length > 1 ? ` ${k + 1}` : ""), at(place)])];
    if (given !== null) rows.push([own.a, marked ? against(given, other) : given]);
    if (other !== null) rows.push([own.b, marked ? against(other, given) : other]);
    return [name && make("p", { class: "quiet" }, name), rows.length ? make("dl", {}, ...rows.flatMap(([head, words]) => [make("dt", {}, head), make("dd", {}, ...(Array.isArray(words) ? words : [words || "(empty)"]))])) : null];
  };

  const called = (own, name) => (own.unit === "item" ? name : `${own.unit} ${name}`);

  /** Units whose outputs are short: a row each. */
  const unitTable = (own, some, hasTexts) => {
    const hasAsked = some.some(([, , , [[, asked]]]) => asked !== null);
    const hasGold = some.some(([, , , [[, , gold]]]) => gold.length);
    const hasScores = !hasTexts && some.some(([, , , , scores]) => scores[0] !== "" || scores[1] !== "");
    const heads = [own.unit, "contribution", ...(hasScores ? [own.a, own.b] : []), ...(hasAsked ? [own.asked] : []), ...(hasGold ? [own.gold] : []), ...(hasTexts ? [own.a, own.b] : [])];
    const rows = some.map(([name, value, , [[, asked, gold, a, b]], scores]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "n" }, sign(value)),
      ...(hasScores ? [0, 1].map((side) => make("td", { class: "n" }, scores[side])) : []),
      ...[...(hasAsked ? [asked] : []), ...(hasGold ? [gold[0]] : []), ...(hasTexts ? [a, b] : [])].map((place) => make("td", {}, held.texts[place] ?? ""))));
    return make("div", { class: "scroll units-table", tabindex: "0", role: "region", "aria-label": "Units" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows)));
  };

  const scoresOf = (scores) => (scores[0] || scores[1] ? ` · scores ${scores[0] || "none"} and ${scores[1] || "none"}` : "");

  const unitEntry = (own, [name, value, n, items, scores]) => make("li", {},
    make("span", { class: "name" }, called(own, name)), " ", make("span", { class: "value" }, sign(value)), make("span", { class: "quiet" }, scoresOf(scores)),
    n > items.length ? make("span", { class: "quiet" }, ` · ${items.length} of ${count(n)} items`) : null,
    ...items.flatMap((one) => item(own, one)).filter((made) => made));

  const unitsOf = (own) => {
    if (!own.units || !own.units.length) return null;
    const every = own.units.flatMap(([, , , items]) => items.flatMap(([, asked, gold, a, b]) => [asked, ...gold, a, b])).filter((place) => place !== null);
    const isShort = own.units.every(([, , n]) => n === 1) && every.every((place) => held.texts[place].length <= SHORT);
    const side = (raises) => {
      const some = own.units.filter(([, value]) => value > 0 === raises);
      if (!some.length) return null;
      const drawn = isShort ? unitTable(own, some, every.length > 0) : make("ul", { class: "units" }, ...some.map((unit) => unitEntry(own, unit)));
      return make("div", {}, make("h5", {}, make("span", { class: `swatch ${raises ? "for-a" : "for-b"}`, "aria-hidden": "true" }), `For ${raises === own.higher ? own.a : own.b}`), drawn);
    };
    const words = `For either system, the largest first${isShort ? "" : "; words that only one output has are marked"}.`;
    return make("div", {}, make("h4", {}, "Units with the largest contributions"), make("p", { class: "quiet" }, words), make("div", { class: "sides" }, ...[side(true), side(false)].filter((made) => made)));
  };

  const again = (command) => {
    const code = make("code", {}, command);
    return make("p", { class: "quiet" }, "Repeat this comparison: ", code, " ", sigdask.copyable(code));
  };

  const checksOf = (own) => make("div", {}, make("h4", {}, "Checked"), make("ul", { class: "checks" },
    ...own.checks.map(([name, verdict, words]) => make("li", { class: verdict === "disagrees" ? "alarm" : null }, make("strong", {}, `${name}: ${verdict}`), words ? `; ${words}` : "")),
    ...own.notes.map((words) => make("li", { class: "quiet" }, words))),
    own.again ? again(own.again) : null);

  const draw = (k) => {
    const own = held.opened[k];
    chosen.value = String(k);
    const heading = make("h3", { tabindex: "-1" }, own.title);
    const pictures = make("div", { class: "pictures" }, ...[own.null ? nullPicture(own) : null, own.shares ? sharesPicture(own) : null].filter((made) => made));
    const none = own.shares ? null : make("p", { class: "quiet" }, "This metric scores whole outputs, not units, so no unit can be named.");
    panel.replaceChildren(heading, ...own.lines.map((words) => make("p", {}, words)), pictures, ...[checksOf(own), none, unitsOf(own)].filter((made) => made));
    return heading;
  };

  const places = new Map(held.opened.map((own, k) => [own.row, k]));
  const show = (row) => {
    const heading = draw(places.get(row));
    heading.scrollIntoView({ block: "start" });
    heading.focus({ preventScroll: true });
  };
  sigdask.openable([...places.keys()], show);
  document.getElementById("detail-choice").hidden = held.opened.length < 2;
  chosen.addEventListener("change", () => draw(Number(chosen.value)));
  const move = (by) => draw((Number(chosen.value) + by + held.opened.length) % held.opened.length);
  document.getElementById("detail-before").addEventListener("click", () => move(-1));
  document.getElementById("detail-after").addEventListener("click", () => move(1));
  draw(0);
})();

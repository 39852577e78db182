"use strict";
// The page's own script: kept by hand, without a build. Everything that users named is set as text.
const sigdask = (() => {
  /* ---- what the page holds, and elements made of it ---- */

  /** What the page holds under a name, or null. */
  const data = (name) => {
    const held = document.getElementById(`data-${name}`);
    return held && JSON.parse(held.textContent);
  };

  const SVG = new Set(["svg", "g", "line", "rect", "circle", "path", "text", "polyline", "title"]);

  /** An element: attributes by name (true for an empty one, null or false for none), children as elements or text. */
  const make = (tag, attributes = {}, ...children) => {
    const made = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  const count = (n) => n.toLocaleString("en");
  const some = (n, of, noun) => `${n === of ? count(n) : `${count(n)} of ${count(of)}`} ${noun}${of === 1 ? "" : "s"}`;

  /** A block of code with a button that copies it. */
  const copyable = (code) => {
    const button = make("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // the reader copies what is selected
        button.textContent = "Selected";
      }
    });
    return button;
  };
  document.querySelectorAll(".copyable code").forEach((code) => code.after(copyable(code)));

  const explanation = make("div", { class: "explained", popover: "auto", role: "status" });
  document.body.append(explanation);

  /** Show words next to an element. */
  const explain = (element, words) => {
    explanation.textContent = words;
    explanation.showPopover?.();
    const box = element.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = explanation;
    explanation.style.left = `${Math.max(Math.min(box.left, innerWidth - width - 12), 8)}px`;
    explanation.style.top = `${box.bottom + height + 8 < innerHeight ? box.bottom + 4 : Math.max(box.top - height - 4, 4)}px`;
  };

  /** A text that explains itself when it is pressed, for keyboards and touch; pointers read the cell's title. */
  const explained = (text, words) => {
    const button = make("button", { type: "button", class: "why", "aria-label": `${text}: explain` }, text);
    button.addEventListener("click", () => explain(button, words));
    return button;
  };

  /* ---- sorting: by what is written ---- */

  const collator = new Intl.Collator("en", { numeric: true });

  /** The number that a text begins with; NaN, which is sorted last, where there is none. */
  const number = (text) => {
    const found = /[-+]?\d[\d.]*(e[-+]?\d+)?/i.exec(text.replaceAll(",", ""));
    return found ? parseFloat(found[0]) : NaN;
  };

  /** How two numbers or texts stand, downwards or upwards; what is missing comes last both ways. */
  const compare = (a, b, down) => {
    const missing = (a === "" || Number.isNaN(a)) - (b === "" || Number.isNaN(b));
    if (missing || a === b) return missing;
    const order = typeof a === "number" ? a - b : collator.compare(a, b);
    return down ? -order : order;
  };

  /** A head whose button sorts; `sort(down)` is called with the direction. */
  const sortingHead = (head, attributes, heads, sort) => {
    const cell = make("th", { scope: "col", ...attributes }, make("button", { type: "button" }, head));
    cell.firstChild.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      heads().forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(down);
    });
    return cell;
  };

  /* ---- filters: choices of values and words to find ---- */

  const MAX_CHOICES = 500;

  /** A bar of filters; `changed({head: value, …}, words)` is called with what is chosen. */
  const filterBar = (name, choices, changed) => {
    const status = make("p", { class: "count", role: "status" });
    const selects = choices.filter(([, values]) => values.length > 1 && values.length <= MAX_CHOICES).map(([head, values]) => {
      const all = make("option", { value: "" }, "all");
      const options = [...values].sort(collator.compare).map((value) => make("option", { value: `=${value}` }, value || "none"));
      const select = make("select", { name: head }, all, ...options);
      return [select, make("label", {}, make("span", {}, head), select)];
    });
    const search = make("input", { type: "search", name: "text", autocomplete: "off", spellcheck: "false" });
    const tell = () => {
      const chosen = selects.filter(([select]) => select.value).map(([select]) => [select.name, select.value.slice(1)]);
      changed(Object.fromEntries(chosen), search.value.toLowerCase().split(/\s+/).filter(Boolean));
    };
    const bar = make("form", { class: "filters", "aria-label": `Filter: ${name}` },
      ...selects.map(([, label]) => label), make("label", {}, make("span", {}, "find"), search), status);
    bar.addEventListener("input", tell);
    bar.addEventListener("submit", (event) => event.preventDefault());
    return { bar, status, tell };
  };

  /* ---- grids: tables whose rows are drawn as they scroll ---- */

  const MAX_PRINTED = 500;
  const BEYOND = 12; // rows that are drawn above and below what is seen
  const NARROW = matchMedia("(max-width: 600px)");
  const FOLDED = ["B", "test set", "subset", "metric"]; // in the cell of A, where a table has too little room
  const DRAWN = 131; // pixels: 8.2rem
  const MARKS = { significant: "found", "not significant": "", agree: "agree", disagree: "disagree", contested: "contested" };

  const ruler = document.createElement("canvas").getContext("2d");

  /** The width of the longest of some texts, in pixels. */
  const measure = (texts, font) => {
    ruler.font = font;
    const most = texts.reduce((length, text) => Math.max(length, text.length), 0);
    return Math.max(0, ...texts.filter((text) => text.length > most - 2).slice(0, 50).map((text) => ruler.measureText(text).width));
  };

  /** A drawing over the nights, 2 units wide a night and 40 high; it names the night that is pointed at, tapped or chosen by arrow keys, and opens it. */
  const drawNights = ({ runs, links, alpha, a, b, p }, kind, row) => {
    const lines = kind === "p" ? { a: p[row] } : { a: a[row], b: b[row] };
    const known = Object.values(lines).flat().filter((value) => value !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const height = kind === "p" ? (value) => 3 + 34 * Math.log10(Math.min(Math.max(value, 1e-4), 1)) / -4
      : (value) => 37 - 34 * (high > low ? (value - low) / (high - low) : 0.5);
    const path = (values) => values.map((value, k) => {
      if (value === null) return "";
      const joins = k > 0 && values[k - 1] !== null;
      return `${joins ? "L" : "M"}${2 * k + 1} ${height(value).toFixed(1)}${joins ? "" : "h0"}`;
    }).join("");
    const title = make("title");
    const level = kind === "p" ? [make("line", { class: "level", x1: 0, x2: 2 * runs.length, y1: height(alpha), y2: height(alpha) })] : [];
    const role = kind === "p" ? { "aria-hidden": "true" } : { role: "slider", tabindex: 0, "aria-label": "Numbers of a run", "aria-valuemin": runs[0], "aria-valuemax": runs.at(-1) };
    const drawing = make("svg", { viewBox: `0 0 ${2 * runs.length} 40`, preserveAspectRatio: "none", ...role }, title,
      ...level, ...Object.entries(lines).map(([name, values]) => make("path", { class: name, d: path(values) })));
    let at = runs.length - 1;
    const choose = (k) => {
      at = Math.min(Math.max(k, 0), runs.length - 1);
      title.textContent = `run ${runs[at]}: A ${a[row][at] ?? "none"}, B ${b[row][at] ?? "none"}, p = ${p[row][at] ?? "none"}`;
      if (kind === "p") return;
      drawing.setAttribute("aria-valuenow", runs[at]);
      drawing.setAttribute("aria-valuetext", title.textContent);
    };
    choose(at);
    const night = (event) => {
      const box = drawing.getBoundingClientRect();
      return Math.floor(runs.length * (event.clientX - box.left) / box.width);
    };
    const open = () => { if (links[runs[at]]) location.assign(links[runs[at]]); };
    drawing.addEventListener("pointermove", (event) => choose(night(event)));
    let told = ""; // by the last tap; the next one on the same night opens it
    drawing.addEventListener("click", (event) => {
      choose(night(event));
      if (event.pointerType !== "touch" || told === title.textContent) open();
      else explain(drawing, told = title.textContent);
    });
    drawing.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: runs.length - 1 }[event.key];
      if (event.key === "Enter") open();
      if (to === undefined) return;
      event.preventDefault();
      choose(to);
      explain(drawing, title.textContent);
    });
    return drawing;
  };

  class Grid {
    constructor(place) {
      this.place = place;
      this.name = place.dataset.grid;
      const held = data(this.name);
      Object.assign(this, { caption: held.caption, n: held.n, plot: held.plot, better: held.better, held });
      this.columns = held.columns.map((own) => ({
        ...own, at: own.codes ? (row) => own.codes[row] : (row) => row,
        keys: own.values.map((text) => (own.number ? number(text) : text)),
      }));
      this.notes = new Map(held.notes ? held.notes.rows.map((row, k) => [row, held.notes.texts[k]]) : []);
      this.listed = held.rows && new Map(held.rows.map((row, k) => [row, k])); // rows of all results, where some are left out
      this.opened = { rows: new Set(), show: null };
      this.order = Array.from({ length: this.n }, (_, row) => row);
      this.shown = this.order;
      this.fit();
      addEventListener("resize", () => this.fit());
    }

    cell(head, row) {
      const own = this.columns.find((column) => column.head === head);
      return own ? own.values[own.at(row)] : "";
    }

    /** Choose the layout for the room that there is. */
    fit() {
      const visible = this.columns.filter((own) => !own.hidden);
      const needed = visible.filter((own) => !own.aside).reduce((sum, own) => sum + this.width(own), this.plot ? DRAWN : 0);
      const isFolded = visible.some((own) => own.head === "B") && (NARROW.matches || needed > this.place.clientWidth);
      if (isFolded !== this.isFolded || NARROW.matches !== this.isNarrow) this.build(isFolded);
    }

    build(isFolded) {
      Object.assign(this, { isFolded, isNarrow: NARROW.matches, height: 0 });
      const first = this.columns.filter((own) => isFolded && own.head === "A");
      const visible = [...first, ...this.columns.filter((own) => !own.hidden && !(isFolded && ["A", ...FOLDED].includes(own.head)))];
      this.pair = first[0];
      this.pins = visible.filter((own) => own.pinned);
      this.layout = visible.flatMap((own) => (own.head === "A - B" && this.plot ? [own, null] : [own]));
      this.heads = this.layout.map((own) => own === null ? make("td", { class: "drawn" }, "") : own.series ? make("th", { scope: "col" }, own.head) : sortingHead(
        own === this.pair ? "A and B" : own.head, { class: this.kind(own) }, () => this.heads, (down) => this.sort(own, down)));
      this.body = make("tbody");
      this.table = make("table", { class: isFolded ? "folded" : null }, make("caption", {}, this.caption), make("colgroup"),
        make("thead", {}, make("tr", { "aria-rowindex": 1 }, ...this.heads)), this.body);
      this.scroll = make("div", { class: "scroll rows few", role: "region", tabindex: 0, "aria-label": this.caption }, this.table);
      this.filters ??= this.bar();
      this.place.replaceChildren(this.filters.bar, this.scroll);
      this.scroll.addEventListener("scroll", () => requestAnimationFrame(() => this.draw(0, true)));
      new ResizeObserver(() => requestAnimationFrame(() => this.draw(0, true))).observe(this.scroll);
      this.size();
      this.filters.tell();
    }

    /** The bar of filters, and the choice of all columns. */
    bar() {
      const choices = this.columns.filter((own) => own.filter).map((own) => [own.head, own.values]);
      const made = filterBar(this.caption, choices, (chosen, words) => this.filter(chosen, words));
      if (this.columns.some((own) => own.aside)) {
        this.all = make("input", { type: "checkbox", name: "all" });
        made.status.before(make("label", { class: "all" }, this.all, "all columns"));
      }
      return made;
    }

    /** Set the widths of columns, so that rows may come and go; of two pinned ones, the first is as far from the edge as the last is wide. */
    size() {
      this.table.querySelector("colgroup").replaceChildren(...this.layout.map((own) => {
        const made = make("col", { class: own?.aside ? "aside" : null });
        made.style.width = `${own === null ? DRAWN : this.width(own)}px`;
        return made;
      }));
      if (this.pins.length > 1) this.table.style.setProperty("--pin", `${this.width(this.pins[1])}px`);
    }

    /** The pixels that a column takes: its longest text or word, within limits. */
    width(own) {
      if (own.series) return 224;
      const { fontFamily, fontSize } = getComputedStyle(this.table ?? this.place);
      const em = parseFloat(fontSize);
      const font = `${own.number ? 400 : 600} ${fontSize} ${fontFamily}`;
      const names = own === this.pair ? [...own.values, ...FOLDED.flatMap((head) => this.columns.find((other) => other.head === head && !other.hidden)?.values ?? [])] : own.values;
      const isWrapped = this.isNarrow && own.pinned;
      const texts = measure(isWrapped ? names.flatMap((text) => text.split(" ")) : names, font);
      const head = measure(own.head.split(" "), `600 ${0.86 * em}px ${fontFamily}`) + 1.2 * em;
      const opens = own.head === "A" && this.opened.rows.size > 0 ? (this.pair ? 12 : 58) : 0;
      const marked = own.head === "verdict" || own.head === "checks" ? 1.2 * em : 0;
      return Math.ceil(Math.max(Math.min(texts, (this.isNarrow ? 9.5 : 20) * em) + opens + marked, head) + 18);
    }

    /** The classes of a column's cells. */
    kind(own, more = null) {
      const pin = own.pinned && `pinned${this.pins.length > 1 && own === this.pins[0] ? " first" : ""}`;
      return [own.number && "n", own.aside && "aside", own === this.pair && "pair", pin, more].filter(Boolean).join(" ") || null;
    }

    filter(chosen, words) {
      this.scroll.classList.toggle("few", !this.all?.checked);
      const tests = this.columns.filter((own) => own.head in chosen).map((own) => {
        const code = own.values.indexOf(chosen[own.head]);
        return (row) => own.at(row) === code;
      });
      const named = this.columns.filter((own) => !own.number);
      for (const word of words) {
        const has = named.map((own) => own.values.map((text) => text.toLowerCase().includes(word)));
        tests.push((row) => named.some((own, k) => has[k][own.at(row)]));
      }
      this.tests = tests;
      this.refresh();
    }

    sort(own, down) {
      this.order.sort((a, b) => compare(own.keys[own.at(a)], own.keys[own.at(b)], down) || a - b);
      this.refresh();
    }

    refresh() {
      this.shown = this.order.filter((row) => this.tests.every((test) => test(row)));
      this.table.setAttribute("aria-rowcount", this.shown.length + 1);
      this.scroll.scrollTop = 0;
      this.tell();
      this.draw();
    }

    tell(more = "") {
      this.filters.status.textContent = some(this.shown.length, this.n, "row") + more;
    }

    print() {
      this.tell(this.shown.length > MAX_PRINTED ? `, of which the first ${MAX_PRINTED} are printed` : "");
      this.draw(MAX_PRINTED);
    }

    /**
     * Draw the rows that are seen, or so many of all of them. After a move, rows that are drawn already stay: if a button
     * were replaced while it is pressed, the click would be lost.
     */
    draw(all = 0, moved = false) {
      const height = this.height || 32;
      const first = all ? 0 : Math.max(Math.floor(this.scroll.scrollTop / height) - BEYOND, 0);
      const seen = Math.ceil((this.scroll.clientHeight || 600) / height) + 2 * BEYOND;
      const last = Math.min(first + (all || seen), this.shown.length);
      const range = `${first} ${last}`;
      if (moved && range === this.range) return;
      this.range = range;
      const active = document.activeElement;
      const focused = this.body.contains(active) ? active.closest("tr").dataset.row : undefined;
      const place = focused && [...active.closest("tr").querySelectorAll("button, a, [tabindex]")].indexOf(active);
      const rows = this.shown.slice(first, last).map((row, k) => this.row(row, first + k));
      this.body.replaceChildren(this.space(first * height), ...rows, this.space(all ? 0 : (this.shown.length - last) * height));
      if (rows.length && !this.height) this.height = rows[0].getBoundingClientRect().height;
      if (focused) this.body.querySelectorAll(`tr[data-row="${focused}"] :is(button, a, [tabindex])`)[place]?.focus({ preventScroll: true });
    }

    space(height) {
      const made = make("tr", { class: "space", "aria-hidden": "true" }, make("td", { colspan: this.layout.length }));
      made.firstChild.style.height = `${height}px`;
      made.hidden = height === 0;
      return made;
    }

    row(row, k) {
      const better = this.better?.[row];
      const cells = this.layout.map((own) => {
        if (own === null) return make("td", { class: "drawn" }, this.picture(row));
        if (own.series) return make("td", { class: "series" }, this.nights(own.series, row));
        const text = own.values[own.at(row)];
        const wins = (own.head === "A" && better === "1") || (own.head === "B" && better === "2");
        const mark = own.head === "verdict" || own.head === "checks" ? `mark ${MARKS[text] ?? "open"}` : wins && "wins";
        const note = own.head === "verdict" && this.notes.get(row);
        const hint = [text, own.hints?.[text], note].filter(Boolean).join("; ");
        const words = note || text === "disagree" ? explained(text, hint) : text;
        const button = own.head === "A" && this.opened.rows.has(row) ? this.button(row) : null;
        const link = own.links?.[text];
        const shown = own === this.pair ? this.both(row, button) : [button, link ? make("a", { href: link }, text) : words];
        return make("td", { class: this.kind(own, mark), title: hint.length > 12 ? hint : null }, ...shown);
      });
      const found = this.cell("verdict", row) === "significant" ? "found" : null;
      return make("tr", { "aria-rowindex": k + 2, "data-row": row, class: found }, ...cells);
    }

    /** The names of both systems, one below the other, within the button if the comparison can be opened; then what they are compared on. */
    both(row, button) {
      const place = FOLDED.slice(1).filter((head) => this.columns.some((own) => own.head === head && !own.hidden));
      const names = [this.cell("A", row), make("br"), this.cell("B", row)];
      button?.classList.add("pair");
      button?.replaceChildren(...names);
      return [...(button ? [button] : names), make("div", { class: "quiet" }, place.map((head) => this.cell(head, row)).filter(Boolean).join(", "))];
    }

    button(row) {
      const made = make("button", { type: "button", class: "open" }, "Open");
      made.setAttribute("aria-label", `Open ${this.cell("A", row)} and ${this.cell("B", row)}, ${this.cell("metric", row)}`);
      made.addEventListener("click", () => this.opened.show(this.held.rows ? this.held.rows[row] : row, made));
      return made;
    }

    /** The difference and its interval, on the scale of all with the same metric. */
    picture(row) {
      this.scales ??= this.scaled();
      const metric = this.cell("metric", row);
      const at = (value) => 4 + 132 * (value - this.scales[metric][0]) / (this.scales[metric][1] - this.scales[metric][0] || 1);
      const { low, high, at: point } = this.plot;
      const line = (kind, from, to, y1, y2) => make("line", { class: kind, x1: at(from), x2: at(to), y1, y2 });
      return make("svg", { class: "forest", viewBox: "0 0 140 20", "aria-hidden": "true" }, line("zero", 0, 0, 0, 20),
        low[row] === null || high[row] === null ? null : line("sure", low[row], high[row], 10, 10),
        ...(point[row] === null ? [] : ["dot", "hole"].map((kind) => line(kind, point[row], point[row], 10, 10))));
    }

    /** Scores or p over the nights; drawn once, as rows come and go. */
    nights(kind, row) {
      this.drawn ??= new Map();
      const key = `${kind} ${row}`;
      if (!this.drawn.has(key)) this.drawn.set(key, drawNights(this.held.series, kind, row));
      return this.drawn.get(key);
    }

    scaled() {
      const found = {};
      for (let row = 0; row < this.n; row += 1) {
        const own = (found[this.cell("metric", row)] ??= [0, 0]);
        for (const ends of [this.plot.low, this.plot.high, this.plot.at]) {
          own[0] = Math.min(own[0], ends[row] ?? 0);
          own[1] = Math.max(own[1], ends[row] ?? 0);
        }
      }
      return found;
    }

    openable(rows, show) {
      const own = this.listed ? rows.filter((row) => this.listed.has(row)).map((row) => this.listed.get(row)) : rows;
      this.opened = { rows: new Set(own), show };
      this.fit();
      this.size();
      this.draw();
    }
  }

  const grids = new Map([...document.querySelectorAll(".grid")].map((place) => [place.dataset.grid, new Grid(place)]));
  const comparisons = grids.get("comparisons");

  addEventListener("beforeprint", () => grids.forEach((grid) => grid.print()));
  addEventListener("afterprint", () => grids.forEach((grid) => grid.refresh()));

  /* ---- rankings: tables that stand in the page ---- */

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells].filter((cell) => cell.tagName === "TH");
    heads.forEach((cell, k) => {
      const key = cell.classList.contains("n") ? number : (text) => text;
      heads[k] = sortingHead(cell.textContent, { class: cell.className || null }, () => heads, (down) => {
        const keyed = [...table.tBodies[0].rows].map((row) => [key(row.cells[k].textContent.trim()), row]);
        table.tBodies[0].append(...keyed.sort(([a], [b]) => compare(a, b, down)).map(([, row]) => row));
      });
      cell.replaceWith(heads[k]);
    });
  }

  const rankings = [...document.querySelectorAll(".ranking")];
  const filterRankings = (status) => (chosen, words) => {
    let n = 0;
    for (const own of rankings) {
      const { set, metric, subset } = own.dataset;
      const fits = Object.entries(chosen).every(([head, value]) => ({ "test set": set, metric, subset })[head] === value);
      const rows = [...own.querySelectorAll("tbody tr[data-system]")];
      for (const row of rows) row.hidden = !words.every((word) => row.dataset.system.toLowerCase().includes(word));
      own.hidden = !fits || rows.every((row) => row.hidden);
      n += !own.hidden;
    }
    status().textContent = some(n, rankings.length, "ranking");
  };
  if (rankings.length > 1) {
    const values = (name) => [...new Set(rankings.map((own) => own.dataset[name]))];
    const made = filterBar("rankings", [["test set", values("set")], ["subset", values("subset")], ["metric", values("metric")]],
      filterRankings(() => made.status));
    document.querySelector("#rankings .bar").replaceWith(made.bar);
    made.tell();
  }

  /* ---- matrices: every pair of a ranking ---- */

  const MAX_DRAWN_AT_ONCE = 2000; // comparisons; the matrices of more are drawn when they are near the screen

  /** The rows of a ranking's comparisons, by the names of both systems. */
  const pairsOf = ({ set, subset, metric }) => {
    const fits = [["test set", set], ["subset", subset], ["metric", metric]].map(([head, value]) => {
      const own = comparisons.columns.find((column) => column.head === head);
      const code = own.values.indexOf(value);
      return (row) => own.at(row) === code;
    });
    const found = new Map();
    for (let row = 0; row < comparisons.n; row += 1) {
      if (fits.every((fit) => fit(row))) {
        const [a, b] = [comparisons.cell("A", row), comparisons.cell("B", row)];
        found.set(JSON.stringify([a, b]), [row, "1"]).set(JSON.stringify([b, a]), [row, "2"]);
      }
    }
    return found;
  };

  const square = (a, b, found) => {
    if (!found) return make("td", { class: "self" });
    const [row, side] = found;
    const p = comparisons.cell(comparisons.held.decides, row);
    const verdict = comparisons.cell("verdict", row);
    const kind = verdict === "significant" ? (comparisons.better[row] === side ? "better" : "worse") : "";
    return make("td", { class: kind || null, title: `${a} and ${b}: ${kind ? `${kind}, ` : ""}${verdict}, p = ${p}`.replace("= ≤", "≤") }, p);
  };

  const drawMatrix = (own) => {
    const names = [...own.querySelectorAll("tbody tr[data-system]")].map((row) => row.dataset.system);
    const pairs = pairsOf(own.dataset);
    const head = make("tr", {}, make("td"), ...names.map((name) => make("th", { scope: "col", title: name }, make("span", {}, name))));
    const rows = names.map((a) => make("tr", {}, make("th", { scope: "row", title: a }, a),
      ...names.map((b) => square(a, b, pairs.get(JSON.stringify([a, b]))))));
    const caption = make("caption", {}, `p of every pair by ${own.dataset.metric}`);
    own.querySelector(".matrix").replaceChildren(make("div", { class: "scroll both", role: "region", tabindex: 0, "aria-label": caption.textContent },
      make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...rows))));
  };

  const near = new IntersectionObserver((seen) => seen.filter((own) => own.isIntersecting).forEach(({ target }) => {
    near.unobserve(target);
    drawMatrix(target.closest(".ranking"));
  }), { rootMargin: "600px" });
  for (const place of document.querySelectorAll(".matrix")) {
    // drawn while the page is scrolled, it would move what the reader is about to press
    if (place.closest("details").open && comparisons.n <= MAX_DRAWN_AT_ONCE) drawMatrix(place.closest(".ranking"));
    else near.observe(place);
  }
  addEventListener("beforeprint", () => rankings.forEach((own) => {
    if (own.querySelector(".pairs")?.open && !own.querySelector(".matrix table")) drawMatrix(own);
  }));

  performance.mark("sigdask:ready");

  return Object.freeze({
    data, make, copyable,
    /** Say which rows of all results can be opened, and what shows one: `show(row, button)`. */
    openable: (rows, show) => comparisons.openable([...rows], show),
    /** What the table of comparisons says of a row of all results, by the heads of its columns. */
    row: (row) => {
      const own = comparisons.listed ? comparisons.listed.get(row) : row;
      return Object.fromEntries(comparisons.columns.map((column) => [column.head, column.values[column.at(own)]]));
    },
  });
})();

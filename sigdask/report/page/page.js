"use strict";
const sigdask = (() => {
  /** What the page holds under a name, or null. */
  const data = (name) => {
    const held = document.getElementById(`data-${name}`);
    return held && JSON.parse(held.textContent);
  };

  /** An element: attributes by name (true for an empty one, null for none), children as elements or as text. */
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "rect", "circle", "path", "text", "polyline"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  const opened = { rows: new Set(), show: () => {} };

  /** Say which rows of the table of comparisons can be opened, and what shows one: show(row). */
  const openable = (rows, show) => {
    opened.rows = new Set(rows);
    opened.show = show;
  };

  return Object.freeze({ data, make, openable });
})();

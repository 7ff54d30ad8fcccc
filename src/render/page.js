"use strict";
(function () {
	const UNIT_S = 1e-4, FACT = 5, NO_STATE = 4;
	const table = document.getElementById("table"), stretch = document.getElementById("stretch");
	const flame = document.querySelector("svg.flame");
	const rows = table ? Array.from(table.tBodies[0].rows) : [];
	const heads = table ? Array.from(table.tHead.rows[0].cells) : [];
	const source = document.getElementById("facts");
	const data = source ? JSON.parse(source.textContent) : { scanned: [], facts: [] };
	const steps = data.scanned.length;

	/* The table: sorted by a click, filtered by words. ------------------------------------- */

	const word = document.getElementById("word"), told = document.getElementById("rows");
	const absent = new Set(); /* rows without a sample in the stretch */

	function showRows() {
		const words = word.value.toLowerCase().split(/\s+/).filter((one) => one);
		let shown = 0;
		for (const row of rows) {
			const text = row.textContent.toLowerCase();
			row.hidden = absent.has(row) || !words.every((one) => text.includes(one));
			shown += !row.hidden;
		}
		told.textContent = shown === rows.length ? rows.length + " rows" : shown + " of " + rows.length + " rows";
	}

	function valueOf(row, column) {
		const cell = row.cells[column];
		return heads[column].classList.contains("n") ? parseFloat(cell.dataset.v ?? "NaN") : cell.textContent;
	}

	/* Numbers: the largest first; texts in their order; what is absent last. */
	function compare(a, b, up) {
		const none = (value) => (typeof value === "number" ? Number.isNaN(value) : value === "-");
		if (none(a) || none(b))
			return none(a) - none(b);
		const more = typeof a === "number" ? a - b : a.localeCompare(b);
		return up ? more : -more;
	}

	/* Most time first in a stretch, too, unless a column was chosen. */
	function order() {
		const sorted = heads.findIndex((head) => head.hasAttribute("aria-sort"));
		const column = sorted >= 0 ? sorted : heads.findIndex((head) => /^(threads|avg_thr)$/.test(head.dataset.c));
		const up = sorted >= 0 && heads[sorted].getAttribute("aria-sort") === "ascending";
		const whole = sorted < 0 && !table.classList.contains("partly");
		rows.sort((a, b) => (whole || column < 0 ? 0 : compare(valueOf(a, column), valueOf(b, column), up)) || a.dataset.r - b.dataset.r);
		table.tBodies[0].append(...rows);
	}

	function sort(column) {
		const head = heads[column], number = head.classList.contains("n"), before = head.getAttribute("aria-sort");
		const up = before ? before === "descending" : !number;
		for (const other of heads)
			other.removeAttribute("aria-sort");
		head.setAttribute("aria-sort", up ? "ascending" : "descending");
		order();
	}

	heads.forEach((head, column) => {
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = head.textContent;
		button.addEventListener("click", () => sort(column));
		head.replaceChildren(button);
	});
	if (table) {
		document.getElementById("words").hidden = false;
		word.addEventListener("input", showRows);
		showRows();
	}

	/* A stretch of the time: the facts of its steps, added up. ----------------------------- */

	if (!steps)
		return;
	const from = document.getElementById("from"), to = document.getElementById("to");
	const plots = Array.from(document.querySelectorAll(".plot"));
	const chosen = document.getElementById("chosen"), command = document.getElementById("command");
	const whole = document.getElementById("whole");
	const wholeCells = new Map(); /* cells of the table and the lists, as they are for all of the time */
	let first = 0, last = steps - 1;

	function sums() {
		const scanned = data.scanned.slice(first, last + 1).reduce((sum, one) => sum + one, 0);
		const found = { scanned, states: [], waits: [], rows: new Map(), all: 0, on: [], off: [] };
		const facts = data.facts;
		const frames = flame ? flame.querySelectorAll("#frames > g").length : 0;
		for (let i = 0; i < frames; i++)
			found.on[i] = found.off[i] = 0;
		for (let at = 0; at < facts.length;) {
			const [row, state, wait, frame, count] = facts.slice(at, at + FACT), end = at + FACT + 2 * count;
			let time = 0;
			for (at += FACT; at < end; at += 2)
				if (facts[at] >= first && facts[at] <= last)
					time += facts[at + 1];
			if (!time)
				continue;
			found.all += time;
			found.states[state] = (found.states[state] || 0) + time;
			found.waits[wait] = (found.waits[wait] || 0) + time;
			if (!found.rows.has(row))
				found.rows.set(row, Array(NO_STATE + 1).fill(0));
			found.rows.get(row)[state] += time;
			if (frame < frames)
				found[state ? "off" : "on"][frame] += time * UNIT_S;
		}
		return found;
	}

	/* What a column has of a row in a stretch; null: only of all the time. */
	function measure(name, states, found) {
		const all = states.reduce((sum, one) => sum + one, 0);
		const of = { on_thr: 0, rq_thr: 1, d_thr: 2, s_thr: 3 }[name];
		if (name === "threads" || name === "avg_thr")
			return all / found.scanned;
		if (name === "seconds")
			return all * UNIT_S;
		if (name === "share")
			return all / found.all * 1000;
		return of === undefined ? null : states[of] / found.scanned;
	}

	function format(name, value) {
		if (name === "share")
			return (value / 10).toFixed(1) + "%";
		return value || !name.endsWith("thr") || name === "avg_thr" ? value.toFixed(2) : "-";
	}

	function put(element, words, value) {
		if (!wholeCells.has(element))
			wholeCells.set(element, [element.textContent, element.dataset.v]);
		element.textContent = words;
		if (value !== undefined)
			element.dataset.v = value;
	}

	function restore() {
		for (const [element, [words, value]] of wholeCells) {
			element.textContent = words;
			if (value === undefined)
				delete element.dataset.v;
			else
				element.dataset.v = value;
		}
		wholeCells.clear();
	}

	function showStretch(found) {
		for (const element of document.querySelectorAll("[data-s]"))
			put(element, ((found.states[element.dataset.s] || 0) / found.scanned || 0).toFixed(2));
		for (const element of document.querySelectorAll("[data-w]"))
			put(element, ((found.waits[element.dataset.w] || 0) / found.scanned || 0).toFixed(2));
		for (const row of rows) {
			const states = found.rows.get(+row.dataset.r);
			if (!states) {
				absent.add(row);
				continue;
			}
			heads.forEach((head, column) => {
				const value = measure(head.dataset.c, states, found);
				if (value === null)
					return;
				put(row.cells[column], format(head.dataset.c, value), head.dataset.c === "share" ? value : value * 100);
			});
		}
	}

	function two(number) {
		return String(number).padStart(2, "0");
	}

	/* A time of the zone of whoever wrote the page. */
	function local(ms) {
		const time = new Date(ms + data.zone_ms);
		return two(time.getUTCHours()) + ":" + two(time.getUTCMinutes()) + ":" + two(time.getUTCSeconds()) +
			(data.step_ms < 1000 ? "." + time.getUTCMilliseconds() / 100 : "");
	}

	function day(ms) {
		return new Date(ms + data.zone_ms).toISOString().slice(0, 10);
	}

	function tell(all) {
		const begin = data.from_ms + first * data.step_ms, end = data.from_ms + (last + 1) * data.step_ms;
		const later = day(begin) === day(end) ? "" : day(end) + " ";
		const days = day(data.from_ms) === day(data.from_ms + steps * data.step_ms) ? "" : day(begin) + " ";
		chosen.textContent = all ? "drag in a chart to choose a stretch"
			: days + local(begin) + " to " + (days && later) + local(end) + "; findings are of all of the time";
		whole.disabled = all;
		command.hidden = all || !command.dataset.command;
		command.textContent = command.dataset.command + " --from " + new Date(begin).toISOString() + " --to " + new Date(end).toISOString();
	}

	function veil(plot) {
		for (const [left, width] of [[0, first], [last + 1, steps - last - 1]]) {
			const cover = document.createElement("span");
			cover.className = "veil";
			cover.style.left = left / steps * 100 + "%";
			cover.style.width = width / steps * 100 + "%";
			plot.append(cover);
		}
	}

	/* Shows that stretch, in the charts at once, elsewhere when it is done. */
	function choose(a, b, done) {
		first = Math.max(0, Math.min(a, b));
		last = Math.min(steps - 1, Math.max(a, b));
		const all = first === 0 && last === steps - 1;
		from.value = first;
		to.value = last;
		document.querySelectorAll(".veil").forEach((cover) => cover.remove());
		if (!all)
			plots.forEach(veil);
		tell(all);
		if (!done)
			return;
		absent.clear();
		restore();
		document.body.classList.toggle("partly", !all);
		if (table)
			table.classList.toggle("partly", !all);
		const found = all ? null : sums();
		if (found)
			showStretch(found);
		if (flame && flame.weigh)
			flame.weigh(found && found.all ? found.on : null, found && found.all ? found.off : null);
		if (table) {
			showRows();
			order();
		}
	}

	function stepAt(event, plot) {
		const box = plot.getBoundingClientRect();
		return Math.max(0, Math.min(steps - 1, Math.floor((event.clientX - box.left) / box.width * steps)));
	}

	for (const plot of plots) {
		let began = null;
		plot.classList.add("choosable");
		plot.addEventListener("pointerdown", (event) => {
			if (event.button)
				return;
			began = stepAt(event, plot);
			plot.setPointerCapture(event.pointerId);
			event.preventDefault();
		});
		plot.addEventListener("pointermove", (event) => {
			if (began !== null)
				choose(began, stepAt(event, plot), false);
		});
		plot.addEventListener("pointerup", (event) => {
			if (began !== null)
				choose(began, stepAt(event, plot), true);
			began = null;
		});
	}
	rows.forEach((row) => heads.forEach((head, column) => {
		if (measure(head.dataset.c, [0, 0, 0, 0, 0], { scanned: 1, all: 1 }) === null && head.hasAttribute("data-m"))
			row.cells[column].classList.add("whole");
	}));
	for (const input of [from, to]) {
		input.max = steps - 1;
		input.addEventListener("input", () => choose(+from.value, +to.value, false));
		input.addEventListener("change", () => choose(+from.value, +to.value, true));
	}
	whole.addEventListener("click", () => choose(0, steps - 1, true));
	document.addEventListener("keydown", (event) => {
		if (event.key === "Escape" && !event.defaultPrevented && event.target !== word)
			choose(0, steps - 1, true);
	});
	stretch.hidden = false;
	choose(0, steps - 1, false);
})();

"use strict";
(function () {
	const NS = "http://www.w3.org/2000/svg", XHTML = "http://www.w3.org/1999/xhtml";
	const MARGIN = 14, PADDING = 10, LEAST_LETTERS = 3, THIN = 3;
	const HINT = "Click a frame to zoom, Esc to go back; / or Ctrl-F to search; arrow keys to walk";
	/* the file, or an element of a page */
	const page = document.currentScript.parentNode, alone = page === document.documentElement;
	const head = document.getElementById("head"), canvas = document.getElementById("frames");
	const details = document.getElementById("details"), matched = document.getElementById("matched");
	let letter, zoomed, focused, box = null, pattern = null;

	/* Frames in the file's order, parents first: x and width of 1, as are those of its parts. */
	const frames = Array.from(canvas.children, (g) => {
		const rects = Array.from(g.querySelectorAll("rect"), (rect) => ({
			rect, x: parseFloat(rect.getAttribute("x")) / 100, width: parseFloat(rect.getAttribute("width")) / 100 }));
		const words = g.querySelector("title").textContent;
		const all = { rects: rects.map((part) => ({ ...part })), words, x: rects[0].x, width: rects[0].width };
		return { g, rects, label: g.querySelector("text"), y: parseFloat(rects[0].rect.getAttribute("y")), children: [],
			parent: null, words, name: words.slice(0, words.indexOf("\n")), x: all.x, width: all.width, all };
	});
	frames.forEach((frame, i) => {
		let parent = i ? frames[i - 1] : null;
		while (parent && parent.y <= frame.y)
			parent = parent.parent;
		frame.parent = parent;
		if (parent)
			parent.children.push(frame);
	});
	if (!frames.length)
		return;
	const frameAt = new Map(frames.map((frame) => [frame.g, frame]));

	function make(name, attributes, parent, words) {
		const element = document.createElementNS(NS, name);
		for (const key in attributes)
			element.setAttribute(key, attributes[key]);
		if (words)
			element.textContent = words;
		parent.appendChild(element);
		return element;
	}

	/* As much of words as fits into so many pixels. */
	function fit(label, words, room) {
		if (room < LEAST_LETTERS * letter)
			return "";
		if (/^[ -~]*$/.test(words)) {
			const count = Math.floor(room / letter);
			return words.length <= count ? words : words.slice(0, count - 1) + "…";
		}
		label.textContent = words;
		if (label.getComputedTextLength() <= room)
			return words;
		const letters = Array.from(words);
		let low = 0, high = letters.length;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			label.textContent = letters.slice(0, middle).join("") + "…";
			if (label.getComputedTextLength() <= room)
				low = middle;
			else
				high = middle - 1;
		}
		return low ? letters.slice(0, low).join("") + "…" : "";
	}

	function isBelow(frame, other) {
		for (other = other.parent; other && other !== frame; other = other.parent)
			;
		return !!other;
	}

	function draw() {
		const right = zoomed.x + zoomed.width, pixels = parseFloat(canvas.getAttribute("width"));
		for (const frame of frames) {
			const below = isBelow(frame, zoomed);
			const shown = frame.width > 0 && (below || (frame.x >= zoomed.x - 1e-9 && frame.x + frame.width <= right + 1e-7 && frame.y <= zoomed.y));
			frame.g.style.display = shown ? "" : "none";
			if (!shown)
				continue;
			const from = below ? frame : zoomed;
			for (const part of frame.rects) {
				part.rect.setAttribute("x", (part.x - from.x) / from.width * 100 + "%");
				part.rect.setAttribute("width", part.width / from.width * 100 + "%");
			}
			const room = frame.width / from.width * pixels;
			frame.g.classList.toggle("below", below);
			frame.g.classList.toggle("thin", room < THIN);
			frame.label.setAttribute("x", (frame.x - from.x) / from.width * 100 + "%");
			frame.label.textContent = fit(frame.label, frame.name, room - PADDING);
		}
	}

	/* What is above a match counts with it. */
	function share() {
		let found = 0, until = -1;
		for (const frame of frames) {
			const inside = frame === zoomed || isBelow(zoomed, frame);
			if (inside && frame.match && frame.x >= until) {
				found += frame.width;
				until = frame.x + frame.width - 1e-9;
			}
		}
		return found / zoomed.width;
	}

	function tellMatches() {
		matched.textContent = pattern ? "matched " + (share() * 100).toFixed(2) + " %" : "";
	}

	function search(words) {
		pattern = null;
		if (words) {
			try {
				pattern = new RegExp(words, words === words.toLowerCase() ? "i" : "");
			} catch (error) { /* half typed, or a name with a bracket: as it is */
				pattern = new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
			}
		}
		for (const frame of frames) {
			frame.match = !!pattern && pattern.test(frame.name);
			frame.g.classList.toggle("match", frame.match);
		}
		tellMatches();
	}

	function zoom(frame) {
		zoomed = frame;
		resetButton.classList.toggle("idle", frame === frames[0]);
		draw();
		tellMatches();
	}

	function tell(frame) {
		details.textContent = frame ? frame.name + ":  " + frame.words.slice(frame.name.length + 1) : HINT;
		const room = parseFloat(page.getAttribute("width")) - 2 * MARGIN - 150;
		if (details.getComputedTextLength() > room)
			details.textContent = fitLine(details.textContent, room);
	}

	/* The end has the numbers: the name gives way. */
	function fitLine(words, room) {
		const cut = words.lastIndexOf(":  "), tail = cut < 0 ? "" : words.slice(cut);
		let name = cut < 0 ? words : words.slice(0, cut);
		while (name.length > 8) {
			name = name.slice(0, Math.floor(name.length * 0.9));
			details.textContent = name + "…" + tail;
			if (details.getComputedTextLength() <= room)
				break;
		}
		return name + "…" + tail;
	}

	function percent(part, all) {
		return (part / all * 100).toFixed(2) + " %";
	}

	function seconds(time, all) {
		return time === all ? "all" : time.toFixed(3) + " s";
	}

	/* What the file says of a frame, of other times. */
	function wordsOf(frame) {
		const time = frame.on + frame.off, root = frames[0], parent = frame.parent;
		const words = [frame.all.words.slice(0, frame.all.words.indexOf(",", frame.name.length)), time.toFixed(3) + " s"];
		if (parent)
			words.push(percent(time, root.on + root.off) + " of all");
		if (parent && parent.parent)
			words.push(percent(time, parent.on + parent.off) + " of " + parent.name);
		return words.join(", ") + "; " + [frame.on ? seconds(frame.on, time) + " on CPU" : "",
			frame.off ? seconds(frame.off, time) + " off CPU" : ""].filter((part) => part).join(", ");
	}

	/* Shows other times: seconds on a CPU and off it of stacks that end at each frame; null: all of the file. */
	function weigh(on, off) {
		for (let i = frames.length - 1; i >= 0 && on; i--) {
			const frame = frames[i];
			frame.on = frame.children.reduce((sum, child) => sum + child.on, on[i]);
			frame.off = frame.children.reduce((sum, child) => sum + child.off, off[i]);
		}
		const root = frames[0], all = on && root.on + root.off || 1;
		root.next = 0;
		for (const frame of frames) {
			if (!on) {
				frame.rects.forEach((part, i) => Object.assign(part, frame.all.rects[i]));
				Object.assign(frame, { x: frame.all.x, width: frame.all.width, words: frame.all.words });
			} else {
				const from = frame.parent || frame;
				frame.x = frame.next = from.next;
				frame.width = (frame.on + frame.off) / all;
				from.next += frame.parent ? frame.width : 0;
				Object.assign(frame.rects[0], { x: frame.x, width: frame.width });
				if (frame.rects[1])
					Object.assign(frame.rects[1], { x: frame.x + frame.on / all, width: frame.off / all });
				frame.words = wordsOf(frame);
			}
			frame.g.setAttribute("aria-label", frame.words);
		}
		zoom(zoomed.width > 0 ? zoomed : root);
		tell(null);
	}

	function focus(frame) {
		if (!frame || frame.g.style.display === "none")
			return;
		focused.g.setAttribute("tabindex", "-1");
		frame.g.setAttribute("tabindex", "0");
		focused = frame;
		frame.g.focus();
	}

	function beside(frame, step) {
		const row = (frame.parent ? frame.parent.children : [frame]).filter((one) => one.width > 0);
		return row[row.indexOf(frame) + step];
	}

	function button(words, label, action) {
		const g = make("g", { class: "button", tabindex: "0", role: "button", "aria-label": label }, head);
		g.rect = make("rect", { rx: 5, height: 24, y: 14 }, g);
		g.label = make("text", { y: 30, "text-anchor": "middle" }, g, words);
		make("title", {}, g, label);
		g.addEventListener("click", action);
		g.addEventListener("keydown", (event) => {
			if (event.key === "Enter" || event.key === " ") {
				event.preventDefault();
				event.stopPropagation();
				action();
			}
		});
		return g;
	}

	function openSearch() {
		if (box)
			return;
		box = make("foreignObject", { id: "search", y: 14, height: 24, width: 240 }, head);
		const input = document.createElementNS(XHTML, "input");
		input.setAttribute("placeholder", "function, or regular expression");
		input.setAttribute("spellcheck", "false");
		input.setAttribute("aria-label", "search");
		input.addEventListener("input", () => search(input.value));
		input.addEventListener("keydown", (event) => {
			event.stopPropagation();
			if (event.key === "Escape")
				closeSearch();
		});
		box.appendChild(input);
		searchButton.label.textContent = "Clear";
		place();
		input.focus();
	}

	function closeSearch() {
		box.remove();
		box = null;
		search("");
		searchButton.label.textContent = "Search";
		focus(focused);
	}

	function place() {
		const width = Math.max(480, alone ? window.innerWidth : page.parentNode.clientWidth);
		let right = width - MARGIN;
		page.setAttribute("width", width);
		canvas.setAttribute("width", width - 2 * MARGIN);
		matched.setAttribute("x", right);
		for (const [g, size] of [[searchButton, 76], [resetButton, 96]]) {
			right -= size;
			g.rect.setAttribute("x", right);
			g.rect.setAttribute("width", size);
			g.label.setAttribute("x", right + size / 2);
			right -= 8;
		}
		if (box)
			box.setAttribute("x", right - 240);
	}

	function frameOf(event) {
		const g = event.target.closest ? event.target.closest("#frames > g") : null;
		return g ? frameAt.get(g) : null;
	}

	const resetButton = button("Reset zoom", "show everything (Esc)", () => zoom(frames[0]));
	const searchButton = button("Search", "search (Ctrl-F)", () => (box ? closeSearch() : openSearch()));
	resetButton.id = "reset";
	searchButton.id = "find";
	for (const frame of frames) {
		frame.g.setAttribute("tabindex", "-1");
		/* the line of details tells the same at once */
		frame.g.setAttribute("aria-label", frame.words);
		frame.g.querySelector("title").remove();
	}
	canvas.addEventListener("click", (event) => {
		const frame = frameOf(event);
		if (frame) {
			zoom(frame);
			focus(frame);
		}
	});
	canvas.addEventListener("mouseover", (event) => tell(frameOf(event)));
	canvas.addEventListener("mouseleave", () => tell(null));
	canvas.addEventListener("focusin", (event) => tell(frameOf(event)));
	(alone ? document : page).addEventListener("keydown", (event) => {
		const control = event.ctrlKey || event.metaKey, key = event.key;
		if ((control && key === "f" && !box) || (key === "/" && !control))
			openSearch();
		else if (control || event.altKey)
			return;
		else if (key === "Escape")
			zoom(frames[0]);
		else if (key === "Enter")
			zoom(focused);
		else if (key === "ArrowUp")
			focus(focused.children.reduce((a, b) => (!a || b.width > a.width ? b : a), null));
		else if (key === "ArrowDown")
			focus(focused.parent);
		else if (key === "ArrowLeft" || key === "ArrowRight")
			focus(beside(focused, key === "ArrowLeft" ? -1 : 1));
		else
			return;
		event.preventDefault();
	});
	/* The end of a high graph is where it begins; the head goes along. */
	const port = alone ? window : page.parentNode;
	port.addEventListener("scroll", () => head.setAttribute("transform", "translate(0, " + (alone ? port.scrollY : port.scrollTop) + ")"));
	window.addEventListener("resize", () => {
		place();
		draw();
	});

	const probe = make("text", { y: -99 }, canvas, "m".repeat(50));
	letter = probe.getComputedTextLength() / 50 || 7.23;
	probe.remove();
	focused = frames[0];
	focused.g.setAttribute("tabindex", "0");
	place();
	zoom(frames[0]);
	tell(null);
	page.weigh = weigh;
	port.scrollTo(0, parseFloat(page.getAttribute("height")));
})();

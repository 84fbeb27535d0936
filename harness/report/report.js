// SPDX-License-Identifier: MIT
// Hover, zoom and hiding of series.  Every chart is complete without it.
(function () {
"use strict";
const PAPER = 960, LEFT = 62, WIDTH = 868; // as chart_axis.h has them
const STEPS = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
	900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const charts = [];

function digits(v) {
	return v >= 1000 ? Math.round(v).toLocaleString("en-US") : v === 0 ? "0" :
		v.toFixed(v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2);
}
function duration(ns) {
	const units = ["ns", "us", "ms", "s"];
	let i = 0;
	for (; i < 3 && ns >= 999.5; i++)
		ns /= 1000;
	return (i ? ns.toFixed(ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0) : Math.round(ns)) + " " + units[i];
}
function clock(s, step) {
	const two = n => String(n).padStart(2, "0"), whole = Math.round(s);
	if (step < 1)
		return +s.toFixed(3) + " s";
	if (step < 60 && whole < 600)
		return whole + " s";
	const h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60;
	return (h ? h + ":" + two(m) : m) + ":" + two(whole % 60);
}
const formats = {
	"per-s": v => digits(v) + " /s", "mib": v => digits(v) + " MiB/s", "ns": duration,
	"percent": v => v.toFixed(1) + " %"
};
function make(parent, name, attributes) {
	const node = document.createElementNS(parent.namespaceURI, name);
	for (const key in attributes)
		node.setAttribute(key, attributes[key]);
	return parent.appendChild(node);
}

// What the pointer's place stands for in the chart as it is zoomed now.
function value_at(chart, event) {
	const box = chart.svg.getBoundingClientRect(), view = chart.view;
	const px = (event.clientX - box.left) / box.width * PAPER - LEFT;
	const part = Math.min(1, Math.max(0, px / WIDTH));
	return chart.x0 + (view[0] + part * (view[1] - view[0])) / WIDTH * (chart.x1 - chart.x0);
}
function position(chart, x) {
	return (x - chart.x0) / (chart.x1 - chart.x0) * WIDTH;
}

function draw_ticks(chart) {
	const from = chart.x0 + chart.view[0] / WIDTH * (chart.x1 - chart.x0);
	const to = chart.x0 + chart.view[1] / WIDTH * (chart.x1 - chart.x0);
	const step = STEPS.find(s => (to - from) / s <= 10) || (to - from) / 8;
	const group = chart.svg.querySelector(".xticks"), bottom = chart.bottom;
	group.textContent = "";
	for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9; k++) {
		const x = LEFT + (k * step - from) / (to - from) * WIDTH;
		make(group, "path", {d: "M" + x + " " + bottom + "v5"});
		make(group, "text", {x: x, y: bottom + 18}).textContent = clock(k * step, step);
	}
}
function zoom(chart, from, to) {
	chart.view = [from, to];
	chart.plot.setAttribute("viewBox", from + " 0 " + (to - from) + " " + chart.height);
	draw_ticks(chart);
	for (const flag of chart.svg.querySelectorAll(".flag")) {
		const x = (flag.dataset.x - from) / (to - from) * WIDTH;
		flag.style.display = x < 0 || x > WIDTH ? "none" : "";
		flag.setAttribute("transform", "translate(" + (LEFT + x) + " 3)");
	}
}
function zoom_all(from, to) {
	for (const chart of charts)
		if (chart.time)
			zoom(chart, from, to);
}

function nearest(xs, x) {
	let best = 0;
	for (let i = 1; i < xs.length; i++)
		if (Math.abs(xs[i] - x) < Math.abs(xs[best] - x))
			best = i;
	return best;
}
function cross_at(chart, x) {
	chart.cross.setAttribute("d", x === null ? "" : "M" + position(chart, x) + " 0v" + chart.height);
}
function show_tip(chart, index, event) {
	const tip = chart.tip, x = chart.data.x[index], table = document.createElement("table");
	const title = document.createElement("b");
	title.textContent = chart.time ? "at " + (+x.toFixed(3)) + " s" :
		chart.rate ? digits(x) + " I/Os a second" :
		+(100 * (1 - Math.pow(10, -x))).toFixed(Math.max(1, Math.ceil(x))) + " % are at most";
	chart.data.y.forEach((y, s) => {
		if (y[index] === null || chart.hidden.has(s))
			return;
		const row = table.insertRow(), key = row.insertCell(), dot = document.createElement("i");
		dot.className = "dot " + chart.keys[s].className.match(/k\d/)[0];
		key.append(dot, chart.keys[s].textContent);
		const cell = row.insertCell();
		cell.className = "n";
		cell.textContent = chart.format(y[index]);
	});
	tip.replaceChildren(title, table);
	tip.hidden = false;
	const box = chart.figure.getBoundingClientRect(), left = event.clientX - box.left;
	const wide = tip.offsetWidth, right = left + 18 + wide > box.width;
	tip.style.left = Math.max(0, right ? left - wide - 18 : left + 18) + "px";
	tip.style.top = (event.clientY - box.top + 14) + "px";
}
function hide_tips() {
	for (const chart of charts) {
		chart.tip.hidden = true;
		cross_at(chart, null);
	}
}

function listen(chart) {
	let start = null;
	chart.plot.addEventListener("pointermove", event => {
		const x = value_at(chart, event), index = nearest(chart.data.x, x);
		for (const other of charts)
			if (other === chart || (chart.time && other.time))
				cross_at(other, chart.data.x[index]);
		show_tip(chart, index, event);
		if (start !== null) {
			const a = position(chart, Math.min(start, x)), b = position(chart, Math.max(start, x));
			chart.band.setAttribute("d", "M" + a + " 0H" + b + "V" + chart.height + "H" + a + "Z");
		}
	});
	chart.plot.addEventListener("pointerleave", hide_tips);
	if (!chart.time)
		return;
	chart.plot.addEventListener("pointerdown", event => {
		start = value_at(chart, event);
		event.preventDefault();
	});
	window.addEventListener("pointerup", event => {
		if (start === null)
			return;
		const a = position(chart, start), b = position(chart, value_at(chart, event));
		start = null;
		chart.band.setAttribute("d", "");
		if (Math.abs(a - b) > WIDTH / 500)
			zoom_all(Math.min(a, b), Math.max(a, b));
	});
	chart.plot.addEventListener("dblclick", () => zoom_all(0, WIDTH));
}
function toggle(chart, s) {
	const off = !chart.hidden.delete(s);
	if (off)
		chart.hidden.add(s);
	chart.keys[s].setAttribute("aria-pressed", String(!off));
	for (const shape of chart.plot.querySelectorAll("[data-series='" + s + "']"))
		shape.style.display = off ? "none" : "";
}

for (const figure of document.querySelectorAll(".chart")) {
	const svg = figure.querySelector("svg"), plot = svg.querySelector(".plot");
	const height = +plot.getAttribute("height"), tip = document.createElement("div");
	const chart = {
		figure, svg, plot, height, tip, time: figure.dataset.axis === "time",
		rate: figure.dataset.axis === "rate",
		x0: +figure.dataset.x0, x1: +figure.dataset.x1, view: [0, WIDTH], hidden: new Set(),
		bottom: +plot.getAttribute("y") + height, format: formats[figure.dataset.unit],
		keys: [...figure.querySelectorAll(".key")],
		data: JSON.parse(figure.querySelector("script").textContent)
	};
	if (!chart.data.x.length)
		continue;
	// Something to hover over where no shape is.
	plot.prepend(make(plot, "rect", {x: 0, y: 0, width: WIDTH, height: height, fill: "transparent"}));
	chart.band = make(plot, "path", {"class": "band"});
	chart.cross = make(plot, "path", {"class": "cross"});
	tip.className = "tip";
	tip.hidden = true;
	figure.append(tip);
	charts.push(chart);
	listen(chart);
	chart.keys.forEach((key, s) => key.addEventListener("click", () => toggle(chart, s)));
}
document.documentElement.classList.add("script");
window.addEventListener("beforeprint", () => {
	for (const details of document.querySelectorAll("details:not(.evidence)"))
		details.open = true;
});
})();

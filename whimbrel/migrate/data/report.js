// The charts of the report; data comes from the JSON element, colours from the style sheet.
(function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  let charts = [];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  }

  function axis(title, extra) {
    return Object.assign({
      title: { display: true, text: title, color: colour('soft') },
      ticks: { color: colour('soft') },
      grid: { color: colour('line') },
    }, extra);
  }

  function draw(id, config) {
    const canvas = document.getElementById(id);
    if (!canvas) return;
    config.options = Object.assign({
      responsive: true, maintainAspectRatio: false, animation: false,
    }, config.options);
    config.options.plugins = Object.assign({ legend: { labels: { color: colour('text'), boxWidth: 14 } } },
      config.options.plugins);
    charts.push(new Chart(canvas, config));
  }

  function coverage() {
    const ops = data.coverage;
    const part = function (verdict) {
      return {
        label: verdict, backgroundColor: colour(verdict), stack: 'nodes',
        data: ops.map(function (op) { return op.verdict === verdict ? op.count : 0; }),
      };
    };
    draw('chart-coverage', {
      type: 'bar',
      data: { labels: ops.map(function (op) { return op.op; }), datasets: ['direct', 'adapt', 'custom'].map(part) },
      options: {
        indexAxis: 'y',
        scales: { x: axis('nodes', { stacked: true }), y: axis('', { stacked: true, ticks: { color: colour('soft'), autoSkip: false } }) },
      },
    });
  }

  function errors() {
    const layers = data.layers;
    const least = data.least_error;
    const series = function (label, name, key, more) {
      return Object.assign({
        label: label, borderColor: colour(name), backgroundColor: colour(name), borderWidth: 1.5, pointRadius: layers.length > 120 ? 1 : 2.5,
        data: layers.map(function (l) { return Math.max(l[key], least); }),
      }, more);
    };
    draw('chart-errors', {
      type: 'line',
      data: {
        labels: layers.map(function (l) { return l.name; }),
        datasets: [
          series('own error', 'one', 'own', { showLine: false }),
          series('chained error', 'two', 'chained', {}),
          series('tolerance of own', 'three', 'tolerance', { showLine: false, pointStyle: 'line', pointRadius: layers.length > 120 ? 2 : 4 }),
        ],
      },
      options: {
        interaction: { mode: 'index', intersect: false },
        scales: {
          x: axis('layers in the order they run', { ticks: { display: false }, grid: { display: false } }),
          y: axis('largest |a - b| / max(1, |reference|)', {
            type: 'logarithmic',
            ticks: {
              color: colour('soft'),
              callback: function (v) { return Math.abs(Math.log10(v) % 1) < 1e-6 ? v.toExponential(0) : ''; },
            },
          }),
        },
        plugins: {
          legend: { labels: { color: colour('text'), boxWidth: 14 } },
          tooltip: { callbacks: { label: function (i) { return i.dataset.label + ': ' + i.parsed.y.toExponential(2); } } },
        },
      },
    });
  }

  function latency() {
    const h = data.histogram;
    const middle = function (k) { return h.from_ms + (k + 0.5) * h.bin_ms; };
    // P50, P95 and P99 are drawn over the bars, their names above them on lines of their own.
    const marks = {
      id: 'marks',
      afterDatasetsDraw: function (chart) {
        const area = chart.chartArea;
        const last = area.left + area.width;
        data.percentiles.forEach(function (p, k) {
          const x = Math.min(area.left + (p.ms - h.from_ms) / (h.bin_ms * h.counts.length) * area.width, last);
          const c = chart.ctx;
          c.save();
          c.strokeStyle = c.fillStyle = colour('two');
          c.beginPath(); c.moveTo(x, area.top - 42 + 14 * k); c.lineTo(x, area.bottom); c.stroke();
          c.font = '12px system-ui, sans-serif';
          c.textAlign = x > area.left + area.width * 0.8 ? 'right' : 'left';
          c.fillText(p.name, x + (c.textAlign === 'right' ? -4 : 4), area.top - 34 + 14 * k);
          c.restore();
        });
      },
    };
    draw('chart-latency', {
      type: 'bar',
      data: {
        labels: h.counts.map(function (_, k) { return middle(k).toPrecision(4); }),
        datasets: [{ label: 'runs', backgroundColor: colour('one'), data: h.counts, barPercentage: 1, categoryPercentage: 0.95 }],
      },
      options: {
        scales: { x: axis('ms' + data.modelled, { ticks: { color: colour('soft'), maxTicksLimit: 9, maxRotation: 0 }, grid: { display: false } }), y: axis('runs') },
        layout: { padding: { top: 46 } },
        plugins: { legend: { display: false } },
      },
      plugins: [marks],
    });
  }

  function times() {
    draw('chart-ops', {
      type: 'bar',
      data: {
        labels: data.op_times.map(function (o) { return o.op; }),
        datasets: [{ label: 'ms a run', backgroundColor: colour('one'), data: data.op_times.map(function (o) { return o.ms; }) }],
      },
      options: {
        indexAxis: 'y',
        scales: { x: axis('ms a run' + data.modelled), y: axis('', { ticks: { color: colour('soft'), autoSkip: false }, grid: { display: false } }) },
        plugins: { legend: { display: false } },
      },
    });
  }

  function drawAll() {
    charts.forEach(function (chart) { chart.destroy(); });
    charts = [];
    if (data.coverage) coverage();
    if (data.layers) errors();
    if (data.histogram) latency();
    if (data.op_times) times();
  }

  drawAll();
  dark.addEventListener('change', drawAll);
})();

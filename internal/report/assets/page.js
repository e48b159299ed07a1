'use strict'
// Reads what lies under the pointer or the arrow keys, and draws clouds of points. The page is whole without this.

for (const figure of document.querySelectorAll('.picture')) {
  const plot = figure.querySelector('.plot')
  const readings = figure.querySelector('.readings')
  const cloud = figure.querySelector('.cloud')
  if (cloud) new Cloud(figure, plot, JSON.parse(cloud.textContent))
  else if (readings) follow(figure, plot, JSON.parse(readings.textContent))
}

// Makes a picture one that can be reached by keyboard and read.
function reader(figure, plot) {
  const out = figure.querySelector('.read')
  out.hidden = false
  plot.tabIndex = 0
  plot.setAttribute('role', 'application')
  plot.setAttribute('aria-roledescription', 'picture; arrow keys read it')
  return out
}

function follow(figure, plot, readings) {
  const out = reader(figure, plot)
  const cursor = plot.appendChild(document.createElement('span'))
  cursor.className = 'cursor'
  cursor.hidden = true
  let at = -1
  const show = i => {
    at = Math.max(0, Math.min(readings.length - 1, i))
    cursor.hidden = false
    cursor.style.left = readings[at].at + '%'
    out.textContent = readings[at].text
  }
  plot.onpointermove = plot.onpointerdown = e => {
    const x = place(plot, e)
    let best = 0
    readings.forEach((r, i) => { if (Math.abs(r.at - x) < Math.abs(readings[best].at - x)) best = i })
    show(best)
  }
  plot.onpointerleave = () => { cursor.hidden = true; out.textContent = '' }
  plot.onblur = plot.onpointerleave
  plot.onkeydown = e => keys(e, {
    ArrowRight: () => show(at + 1), ArrowLeft: () => show(at - 1), PageDown: () => show(at + 10), PageUp: () => show(at - 10),
    Home: () => show(0), End: () => show(readings.length - 1), Escape: () => plot.blur(),
  })
}

// The pointer's place, in percent of the plot's width.
function place(plot, e) {
  const box = plot.getBoundingClientRect()
  return Math.max(0, Math.min(100, 100 * (e.clientX - box.left) / box.width))
}

function keys(e, acts) {
  if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return
  e.preventDefault()
  acts[e.key]()
}

// Points by the hundred thousand: a pixel is the denser, the more of them lie there. A part of the x axis can be chosen, and its
// figures read.
function Cloud(figure, plot, c) {
  const bytes = Uint8Array.from(atob(c.Points.replaceAll('-', '+').replaceAll('_', '/')), b => b.charCodeAt(0))
  const view = new DataView(bytes.buffer), n = c.N
  const value = i => view.getFloat32(4 * i, true)
  const xs = Float64Array.from({ length: n }, (_, i) => value(i)), ys = Float64Array.from({ length: n }, (_, i) => value(n + i))
  const scale = (lo, hi, log) => log ? v => Math.log(v / lo) / Math.log(hi / lo) : v => (v - lo) / (hi - lo)
  const back = (lo, hi, log) => log ? at => lo * (hi / lo) ** at : at => lo + (hi - lo) * at
  const px = scale(c.XLo, c.XHi, c.XLog), py = scale(c.YLo, c.YHi, c.YLog), xAt = back(c.XLo, c.XHi, c.XLog)
  const canvas = document.createElement('canvas')
  plot.querySelector('svg').before(canvas)
  const color = getComputedStyle(plot.querySelector('.cell') ?? plot)

  const draw = () => {
    const box = plot.getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1)
    const w = canvas.width = Math.round(box.width * ratio), h = canvas.height = Math.round(box.height * ratio)
    if (!w || !h) return
    const dot = Math.max(1, Math.round((n > 20000 ? 1 : n > 2000 ? 2 : 3) * ratio))
    const counts = new Uint32Array(w * h)
    let most = 0
    for (let i = 0; i < n; i++) {
      const left = Math.round(px(xs[i]) * (w - dot)), top = Math.round((1 - py(ys[i])) * (h - dot))
      for (let y = top; y < top + dot; y++) for (let x = left; x < left + dot; x++) {
        const seen = ++counts[y * w + x]
        if (seen > most) most = seen
      }
    }
    const [r, g, b] = color.color.match(/[\d.]+/g).map(Number)
    const image = new ImageData(w, h)
    for (let i = 0; i < counts.length; i++) {
      if (!counts[i]) continue
      image.data.set([r, g, b, 70 + 185 * Math.log(counts[i]) / Math.log(Math.max(most, 2))], 4 * i)
    }
    canvas.getContext('2d').putImageData(image, 0, 0)
    plot.classList.add('drawn')
  }
  new ResizeObserver(draw).observe(plot)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)

  const out = reader(figure, plot)
  const box = plot.appendChild(document.createElement('span'))
  box.className = 'chosen'
  box.hidden = true
  let from = 0, to = 100, start = null
  const choose = (a, b) => {
    from = Math.max(0, Math.min(a, b))
    to = Math.min(100, Math.max(a, b))
    const whole = from === 0 && to === 100
    box.hidden = whole
    box.style.left = from + '%'
    box.style.width = to - from + '%'
    const lo = xAt(from / 100), hi = xAt(to / 100), inside = []
    for (let i = 0; i < n; i++) if (whole || xs[i] >= lo && xs[i] <= hi) inside.push(ys[i])
    inside.sort((a, b) => a - b)
    const q = p => show(percentile(inside, p), c.YUnit)
    plot.dataset.figures = JSON.stringify({ n: inside.length, p50: percentile(inside, 50), p90: percentile(inside, 90), p99: percentile(inside, 99) })
    out.textContent = whole ? '' : `${show(lo, c.XUnit)} to ${show(hi, c.XUnit)}: ${inside.length.toLocaleString('en-US')} requests` + (inside.length ? `, p50 ${q(50)}, p90 ${q(90)}, p99 ${q(99)}` : '')
  }
  choose(0, 100)
  figure.querySelector('.note')?.append(' Drag across the picture, or use the arrow keys, to read a part of it.')
  plot.onpointerdown = e => { if (e.button === 0) { start = place(plot, e); plot.setPointerCapture(e.pointerId) } }
  plot.onpointermove = e => { if (start !== null) choose(start, place(plot, e)) }
  plot.onpointerup = e => { if (start !== null && Math.abs(place(plot, e) - start) < 0.5) choose(0, 100); start = null }
  plot.onpointercancel = () => { start = null }
  const move = by => {
    if (from === 0 && to === 100) return choose(0, 10)
    const width = to - from, left = Math.max(0, Math.min(100 - width, from + by))
    choose(left, left + width)
  }
  plot.onkeydown = e => keys(e, {
    ArrowRight: () => e.shiftKey ? choose(from, to + 5) : move(5), ArrowLeft: () => e.shiftKey ? choose(from, Math.max(from + 5, to - 5)) : move(-5),
    Home: () => choose(0, to - from), Escape: () => choose(0, 100),
  })
}

// Linear between the two neighboring ranks, of sorted values.
function percentile(sorted, p) {
  if (!sorted.length) return NaN
  const at = p / 100 * (sorted.length - 1), i = Math.floor(at)
  return i + 1 < sorted.length ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i]
}

// A value with three digits and its unit, as the tables have it.
function show(v, unit) {
  if (!Number.isFinite(v)) return '–'
  const digits = v => String(+v.toPrecision(3))
  if (unit === 'ms' || unit === 's') {
    const s = unit === 'ms' ? v / 1000 : v
    if (s < 0.9995e-3) return digits(s * 1e6) + ' µs'
    return s < 0.9995 ? digits(s * 1e3) + ' ms' : s < 119.5 ? digits(s) + ' s' : (s / 60).toFixed(1) + ' min'
  }
  const text = v >= 999.5e3 ? digits(v / 1e6) + 'M' : v >= 9999.5 ? digits(v / 1e3) + 'k' : v >= 999.5 ? Math.round(v).toLocaleString('en-US') : digits(v)
  return unit ? text + ' ' + unit : text
}

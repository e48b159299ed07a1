// The pictures of a card, made once and changed with its figures. What a screen reader says changes every ten seconds at most.
import * as draw from './draw.js'
import { clock, latency, long, round, short } from './words.js'

function say(plot, text) {
  if (Date.now() - (plot.said ?? 0) < 10000) return
  plot.said = Date.now()
  plot.setAttribute('aria-label', text)
}

// The trace's load over its own time.
export class Curve {
  constructor(figure, t, w) {
    const { bin } = w.curve
    const from = Math.floor(w.trace.from / bin), to = Math.ceil((w.trace.to || w.trace.length + 1) / bin) // only what is played
    const [requests, input_tokens, output_tokens] = ['requests', 'input_tokens', 'output_tokens'].map(of => w.curve[of].slice(from, to)), n = requests.length
    this.origin = from * bin
    this.plot = figure.querySelector('.plot')
    this.t = t
    this.width = bin * n // the last bin ends after the trace
    figure.hidden = !n
    if (!n) return
    const tokens = requests.map((_, i) => input_tokens[i] + output_tokens[i])
    const high = values => values.map(v => 100 - 92 * v / (draw.most(values) || 1))
    const paths = draw.picture(this.plot, n, ['tokens', 'requests'])
    paths.tokens.setAttribute('d', draw.steps(high(tokens)))
    paths.requests.setAttribute('d', draw.line(high(requests)))
    const rate = (values, what) => `${what}, peak ${short(draw.most(values) / bin)}/s`
    t.tokens.textContent = rate(tokens, 'tokens')
    t.requests.textContent = rate(requests, 'requests')
    t.begin.textContent = clock(this.origin)
    const end = t.end.textContent = clock(w.trace.to || w.trace.length)
    this.text = `Load of the trace from ${t.begin.textContent} to ${end}: ${rate(tokens, 'tokens')}, ${rate(requests, 'requests')}; `
    this.plot.style.setProperty('--from', this.place(w.trace.from))
    this.plot.style.setProperty('--to', this.place(w.trace.to || w.trace.length))
    draw.read(this.plot, n, figure.querySelector('.read'), i => `${clock(this.origin + i * bin)}: ${short(tokens[i] / bin)} tokens/s, ${short(requests[i] / bin)} requests/s`)
  }

  place(s) { return 100 * Math.max(0, Math.min(1, (s - this.origin) / this.width)) + '%' }

  move(position) {
    if (!this.width) return
    this.plot.style.setProperty('--at', this.place(position))
    this.t.position.textContent = clock(position)
    say(this.plot, this.text + 'now at ' + clock(position))
  }
}

// Rates of the last minutes, one on top of the other.
export function rates(plot, columns) {
  const paths = plot.paths ??= draw.picture(plot, columns[0].length, ['a0', 'a1', 'a2', 'top'])
  const sums = columns.map((_, i) => columns[0].map((v, j) => v == null ? null : columns.slice(0, i + 1).reduce((sum, c) => sum + c[j], 0)))
  const high = draw.most(sums.at(-1))
  const y = v => v == null ? null : 100 - 94 * v / (high || 1)
  sums.forEach((sum, i) => paths['a' + i].setAttribute('d', draw.area(sum.map(y), (sums[i - 1] ?? sum.map(() => 0)).map(y))))
  paths.top.setAttribute('d', draw.line(sums[0].map(y)))
  say(plot, `The last 10 minutes: peak ${short(high)}, now ${short(sums.at(-1).at(-1))}` + (columns[1] ? `, failed now ${short(columns[1].at(-1))}, dropped ${short(columns[2].at(-1))}` : ''))
  return high
}

// p50 as a line, to p99 a band; the part over a service level stands out.
export function band(figure, p50, p99, slo, slotSeconds, minute) {
  const plot = figure.querySelector('.plot'), n = p50.length
  const paths = plot.paths ??= draw.picture(plot, n, ['band', 'over', 'p99', 'p50'])
  const scale = draw.scale([...p50, ...p99, slo])
  const high = scale ? p99.map(scale.y) : [], low = scale ? p50.map(scale.y) : [], bound = slo ? scale.y(slo) : -1
  const above = y => y == null ? null : Math.min(y, bound)
  paths.band.setAttribute('d', draw.area(high, low))
  paths.over.setAttribute('d', slo ? draw.area(high.map(above), low.map(above)) : '')
  paths.p99.setAttribute('d', draw.line(high))
  paths.p50.setAttribute('d', draw.line(low))

  plot.querySelectorAll('i').forEach(el => el.remove())
  const mark = (text, y, cls) => {
    const i = plot.appendChild(document.createElement('i'))
    i.className = cls
    i.dataset.text = text
    i.style.top = y + '%'
  }
  for (const m of scale?.marks ?? []) if (!slo || Math.abs(scale.y(m) - bound) > 13) mark(round(m), scale.y(m), 'mark')
  if (slo) mark('SLO ' + round(slo), bound, 'mark slo')

  draw.read(plot, n, figure.querySelector('.read'), i => p50[i] == null ? 'none' : `${long((n - i) * slotSeconds)} ago: p50 ${latency(p50[i])}, p99 ${latency(p99[i])}`)
  const known = p50.filter(v => v != null)
  plot.classList.toggle('empty', !known.length)
  say(plot, !known.length ? 'Nothing in the last 10 minutes' :
    `The last 10 minutes: p50 from ${latency(Math.min(...known))} to ${latency(draw.most(known))}, p99 at most ${latency(draw.most(p99))}; ` +
    `the last minute: p50 ${latency(minute.p50)}, p90 ${latency(minute.p90)}, p99 ${latency(minute.p99)}` + (slo ? `; SLO ${latency(slo)}` : ''))
}

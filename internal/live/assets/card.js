// The card of one workload.
import { Curve, band, rates } from './pictures.js'
import { clock, count, latency, long, meaning, percent, short, time } from './words.js'

export const copy = id => document.getElementById(id).content.firstElementChild.cloneNode(true)

export const put = (el, text) => { if (el.textContent !== text) el.textContent = text }

export function make(tag, text, cls) {
  const el = document.createElement(tag)
  if (text != null) el.textContent = text
  if (cls) el.className = cls
  return el
}

// Gives a parent as many children as there are items, and each its figures.
export function list(parent, items, born, fill) {
  while (parent.children.length > items.length) parent.lastChild.remove()
  items.forEach((item, i) => fill(parent.children[i] ?? parent.appendChild(born()), item))
}

export const cells = n => () => {
  const tr = make('tr')
  tr.append(Object.assign(make('th'), { scope: 'row' }), ...Array.from({ length: n }, () => make('td', null, 'n')))
  return tr
}

// The last text of each says how it is computed.
const latencies = [
  ['ttft', 'TTFT', 'time to first token', 'First chunk with content − first byte of the request, of the ok requests of the last minute'],
  ['tpot', 'TPOT', 'time per output token', '(Last − first chunk with content) ÷ (output tokens − 1), of the ok requests of the last minute'],
  ['lateness', 'Lateness', 'of sending, waits for a lane included', 'First byte of the request − due time, of the requests of the last minute'],
]
const tiles = [
  ['In flight', ['in_flight'], 'Requests that are sent and not finished, now'],
  ['Requests/s', ['ok_per_second', 'failed_per_second', 'dropped_per_second'], 'Requests that ended in the last 10 s ÷ 10 s; due: rows that fell due in the same time'],
  ['Output tokens/s', ['output_tokens_per_second'], 'Output tokens of the requests that ended ok in the last 10 s ÷ 10 s'],
  ['Prompt tokens/s', ['prompt_tokens_per_second'], 'Prompt tokens of the requests that ended ok in the last 10 s ÷ 10 s'],
]
const unsent = ['cancelled', 'aborted'] // ended by replayd: no failure of the server

export class Card {
  constructor(board, w, open) {
    this.el = copy('card')
    this.el.open = open
    this.el.addEventListener('toggle', () => this.fill(), true)
    this.t = {}
    for (const el of this.el.querySelectorAll('[data-t]')) this.t[el.dataset.t] = el
    this.tiles = tiles.map(([title, , how]) => {
      const el = this.el.querySelector('.tiles').appendChild(copy('tile'))
      put(el.firstChild, title)
      el.title = how
      return el
    })
    this.latencies = latencies.map(([, title, meaning, how]) => {
      const el = this.el.querySelector('.latencies').appendChild(copy('latency'))
      el.firstChild.firstChild.textContent = title
      el.firstChild.lastChild.textContent = meaning
      el.title = how
      return el
    })
    this.describe(board, w)
  }

  // At the first event, after a reload or a lost connection.
  describe(board, w) {
    this.board = board
    this.w = w
    this.f = w.figures
    this.rows = w.figures.rows ?? []
    this.errors = w.figures.failures ?? []
    this.curve = null
    this.drawn = false
    this.el.id = 'w-' + w.name
    this.el.querySelector('.wide').setAttribute('aria-label', 'The last 10 minutes of ' + w.name)
  }

  // What a tick brings.
  news(f) {
    this.f = f
    if (f.rows) {
      this.rows = this.rows.concat(f.rows).slice(-this.board.slots)
      this.drawn = false
    }
    for (const e of f.failures ?? []) this.errors = this.errors.filter(o => o.outcome !== e.outcome || o.text !== e.text).concat(e)
    this.errors = this.errors.sort((a, b) => b.at - a.at).slice(0, 10)
  }

  // Values of one kind, the newest last; null where there was none.
  column(name) {
    const i = this.board.columns.indexOf(name)
    return Array(this.board.slots - this.rows.length).fill(null).concat(this.rows.map(r => r[i]))
  }

  // By the trace's own times, else the loop's.
  end() { return this.w.trace.to || this.w.trace.length || !this.w.curve.requests.length && this.f.loop_duration }

  place() { return this.w.closed ? count(this.f.finished) + ' finished' : clock(this.f.position) + (this.end() ? ' of ' + clock(this.end()) : '') }

  source({ path, format, requests, sha256 } = this.w.trace) {
    return [path || format + ' rows', path && format, requests && count(requests) + ' requests', path && sha256].filter(Boolean).join(', ')
  }

  since() { return long(this.board.now - this.f.verdict.since) }

  fill() {
    const { w, f, t } = this
    put(t.name, w.name)
    t.name.dataset.level = f.verdict.level
    put(t.phase, f.phase)
    put(t.where, [
      (f.loop_duration || w.closed && f.loop) && 'loop ' + count(f.loop),
      !['waiting', 'warming'].includes(f.phase) && this.place(),
      f.next != null && (f.phase === 'waiting' ? 'begins in ' : 'next in ') + long(f.next),
    ].filter(Boolean).join(' · '))
    put(t.target, '→ ' + w.target)
    put(t.address, [w.url, w.model, w.api].filter(Boolean).join(' · '))
    if (!this.el.open) return
    put(t.why, `${f.verdict.text[0].toUpperCase()}${f.verdict.text.slice(1)} (for ${this.since()})`)
    t.why.dataset.level = f.verdict.level
    this.curve ??= new Curve(this.el.querySelector('.curve'), t, w)
    this.curve.move(f.position)
    this.fillFigures()
    this.fillServer()
    this.fillOutcomes()
    this.fillErrors()
    if (!this.drawn) this.draw()
    this.drawn = true
    put(t.facts, [
      w.schedule, f.target_text && `${w.target} ${f.target_text}`, w.slo && 'SLO ' + w.slo,
      w.trace.format && this.source(),
      (w.trace.from || w.trace.to) && `played from ${clock(w.trace.from)} to ${clock(this.end())}`,
      f.retries && count(f.retries) + ' sent twice', Math.abs(f.skew) >= 0.1 && `wall clock moved by ${f.skew.toFixed(1)} s`,
      f.started && 'running for ' + long(this.board.now - f.started),
    ].filter(Boolean).join(' · '))
  }

  fillFigures() {
    const { w, f, t } = this
    const within = w.slo && `, within SLO: ${f.minute.within_slo == null ? 'no data' : percent(f.minute.within_slo)}`
    const texts = [
      [count(f.in_flight), `of ${count(w.lanes)} lanes, ${count(f.waiting)} waiting`],
      [short(f.rates.finished), `of ${short(f.rates.due)} due` + within],
      [short(f.rates.output_tokens)], [short(f.rates.prompt_tokens)],
    ]
    this.tiles.forEach((el, i) => {
      put(el.children[1].firstChild, texts[i][0])
      put(el.lastChild, texts[i][1] ?? 'peak ' + short(el.most))
    })
    latencies.forEach(([name], i) => list(this.latencies[i].querySelector('dl'), ['p50', 'p90', 'p99'], () => {
      const pair = make('div')
      pair.append(make('dt'), make('dd'))
      return pair
    }, (pair, q) => {
      put(pair.firstChild, q)
      put(pair.lastChild, latency(f.minute[name][q]))
      pair.className = f.minute[name][q] > w.bounds[name] ? 'over' : ''
    }))
    for (const [name, n] of Object.entries({ expected: f.expected, finished: f.finished, dropped: f.dropped, flying: f.in_flight, waiting: f.waiting })) put(t[name], count(n))
  }

  // What engine and GPUs report, of all their traffic.
  fillServer() {
    const s = this.f.server, el = this.el.querySelector('.server')
    el.hidden = !s
    if (!s) return
    const share = v => v == null ? null : percent(v)
    const groups = [
      [['Running', s.running == null ? null : count(s.running), 'Requests that the engine works on'], ['Waiting', s.waiting == null ? null : count(s.waiting), 'Requests in the engine’s queue'],
        ['KV cache', share(s.kv_cache), 'Usage of the fullest KV cache'], ['Prefix hits', share(s.prefix_hits), 'Prompt tokens found in the prefix cache ÷ those looked for, in the last minute']],
      [['GPUs', s.gpus ? count(s.gpus) : null, 'GPUs of the target'], ['Power', s.power == null ? null : short(s.power) + ' W', 'Power of all GPUs'], ['Utilization', share(s.utilization), 'SM activity, else utilization, mean over the GPUs']],
    ]
    groups.forEach((group, i) => {
      const known = group.filter(([, text]) => text != null)
      const [, dl, none] = el.children[i].children
      none.hidden = known.length > 0
      put(none, (i ? s.gpus_down : s.engine_down) ? none.dataset.down : none.dataset.none)
      list(dl, known, () => {
        const pair = make('div')
        pair.append(make('dt'), make('dd'))
        return pair
      }, (pair, [name, text, how]) => {
        put(pair.firstChild, name)
        put(pair.lastChild, text)
        pair.title = how
      })
    })
  }

  // One bar for all that was expected: its parts add up.
  fillBar() {
    const { f } = this
    const ended = Object.entries(f.outcomes)
    const sum = of => of.reduce((n, [, each]) => n + each, 0)
    const parts = [
      ['ok', f.outcomes.ok ?? 0], ['failed', sum(ended.filter(([o]) => o !== 'ok' && !unsent.includes(o)))],
      ['cancelled or aborted', sum(ended.filter(([o]) => unsent.includes(o)))], ['dropped', f.dropped], ['in flight', f.in_flight], ['waiting', f.waiting],
    ]
    const bar = this.el.querySelector('.bar')
    list(bar, parts, () => make('i'), (i, [name, n]) => {
      i.className = name.split(' ')[0]
      i.style.flexGrow = n
      i.title = `${name}: ${count(n)} of ${count(f.expected)}`
    })
    bar.setAttribute('aria-label', `${count(f.expected)} expected: ` + parts.filter(([, n]) => n).map(([name, n]) => `${name} ${count(n)}`).join(', '))
  }

  fillOutcomes() {
    const { f, board } = this
    this.fillBar()
    const all = [
      ...board.outcomes.map(o => [o, o, f.outcomes[o] ?? 0, f.minute.outcomes[o] ?? 0]),
      ...board.drop_reasons.map(r => [r, 'dropped: ' + r, f.drops[r] ?? 0, f.minute.drops[r] ?? 0]),
    ]
    list(this.el.querySelector('.chips'), all.filter(([key, , n]) => n || key === 'ok'), () => make('li'), (li, [key, name, n, minute]) => {
      const asked = key === 'ok' || key === 'filtered' || unsent.includes(key) // by nature or by the configuration
      li.className = key === 'ok' ? 'ok' : asked ? '' : board.drop_reasons.includes(key) ? 'dropped' : 'bad'
      put(li, `${name} ${count(n)}` + (asked || !minute ? '' : ` (${count(minute)} in the last minute)`))
      li.title = meaning[key] ?? ''
    })
    const body = this.el.querySelector('.outcomes tbody')
    if (body.closest('details').open) {
      list(body, all, cells(2), (tr, [key, name, n, minute]) => {
        if (!tr.cells[0].firstChild) tr.cells[0].append(name, make('small', meaning[key]))
        put(tr.cells[1], count(minute))
        put(tr.cells[2], count(n))
        tr.className = n ? '' : 'zero'
      })
    }
  }

  fillErrors() {
    const ol = this.el.querySelector('.errors')
    list(ol, this.errors, () => {
      const li = make('li')
      li.append(make('time'), make('b'), make('span'), make('p'), make('code'))
      return li
    }, (li, e) => {
      const [at, outcome, n, text, id] = li.children
      put(at, time(e.at))
      at.dateTime = new Date(e.at * 1000).toISOString()
      put(outcome, e.outcome)
      put(n, e.count > 1 ? `× ${count(e.count)}` : '')
      put(text, e.text || meaning[e.outcome] || '')
      put(id, e.id)
    })
  }

  draw() {
    const { w, f, board } = this
    this.tiles.forEach((el, i) => { el.most = rates(el.children[2], tiles[i][1].map(c => this.column(c))) })
    latencies.forEach(([name], i) => band(this.latencies[i], this.column(name + '_p50'), this.column(name + '_p99'), w.bounds[name], board.slot_seconds, f.minute[name]))

    // A row a minute, for who wants no pictures: of its slots the mean, the middle p50, the highest p99.
    const per = 60 / board.slot_seconds
    const columns = Object.fromEntries(board.columns.map(name => [name, this.column(name)]))
    list(this.el.querySelector('.minutes tbody'), Array.from({ length: board.slots / per }, (_, m) => m), cells(6), (tr, m) => {
      const known = name => columns[name].slice(board.slots - (m + 1) * per, board.slots - m * per).filter(v => v != null)
      const mean = (...names) => known(names[0]).length ? names.flatMap(known).reduce((a, b) => a + b) / known(names[0]).length : null
      const middle = values => values.sort((a, b) => a - b)[values.length >> 1]
      const both = name => known(name + '_p50').length ? latency(middle(known(name + '_p50'))) + ', ' + latency(Math.max(...known(name + '_p99'))) : '–'
      const texts = [m ? `${m} to ${m + 1}` : 'last', short(mean('ok_per_second')), short(mean('failed_per_second', 'dropped_per_second')), short(mean('output_tokens_per_second')), ...latencies.map(([name]) => both(name))]
      texts.forEach((text, i) => put(tr.cells[i], text))
    })
  }
}

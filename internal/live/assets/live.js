// Listens to replayd, keeps the summary and the cards, and says how old they are.
import { Card, cells, copy, list, make, put } from './card.js'
import { latency, long, percent, short, time } from './words.js'

const $ = id => document.getElementById(id)
const many = 6 // with more workloads than this only those in trouble begin open
const late = 3, lost = 6, retry = 5, patience = 20 // seconds
const rank = ['bad', 'warn', 'ok', 'idle']

let board // what all of the page says of itself: columns, slots, outcomes
let cards = new Map() // by name, in replayd's order
let order = [] // the cards as ticks number them
let notes = []
let said = new Map() // state of each workload as it was last told
let source, heard = Date.now(), tried = 0, broken = false

function all(data) {
  if (data.build !== document.documentElement.dataset.build) return location.reload() // replayd was upgraded
  board = data
  notes = data.notes
  const before = cards
  cards = new Map()
  let troubled = 0
  for (const w of data.workloads) {
    const card = before.get(w.name)
    const open = data.workloads.length <= many || w.figures.verdict.level === 'bad' && troubled++ < 3
    card?.describe(board, w)
    cards.set(w.name, card ?? new Card(board, w, open))
  }
  order = [...cards.values()]
  for (const [name, card] of before) if (!cards.has(name)) { card.el.remove(); said.delete(name) }
  order.forEach((card, i) => { const at = $('cards').children[i]; if (at !== card.el) $('cards').insertBefore(card.el, at ?? null) })
  $('plain')?.remove()
  $('summary').hidden = order.length < 2
  show(data)
}

function news(data) {
  if (!board) return
  board.now = data.now
  notes = data.notes ?? notes
  data.workloads.forEach((f, i) => order[i]?.news(f))
  show(data)
}

function show({ verdict, comparisons }) {
  const top = $('verdict').firstChild
  put(top, verdict.text)
  top.dataset.level = verdict.level
  document.title = `${{ bad: '✕ ', warn: '▲ ' }[verdict.level] ?? ''}${verdict.text} · replayd`
  list($('comparisons'), comparisons, () => copy('versus'), ({ children: [name, text, wide] }, c) => {
    put(name, c.name)
    name.dataset.level = c.level
    put(text, c.text)
    list(wide.firstChild.tBodies[0], c.rows, cells(3), (tr, row) => row.forEach((v, i) => put(tr.cells[i], v)))
  })
  for (const card of order) card.fill()
  summary()
  $('notes').hidden = !notes.length
  list($('notes').querySelector('ol'), notes.toReversed(), () => {
    const li = make('li')
    li.append(make('time'), make('span'))
    return li
  }, (li, n) => {
    li.className = n.level
    put(li.firstChild, time(n.at))
    put(li.lastChild, n.text)
  })
  tell()
}

// Only changes of state are spoken.
function tell() {
  const changes = []
  for (const { w, f } of order) {
    const state = f.phase + f.verdict.level
    if (said.has(w.name) && said.get(w.name) !== state) changes.push(`${w.name}: ${f.phase}, ${f.verdict.text}`)
    said.set(w.name, state)
  }
  if (changes.length) put($('said'), changes.slice(0, 3).join('. ') + (changes.length > 3 ? ` and ${changes.length - 3} more` : ''))
}

function summary() {
  const body = $('summary').querySelector('tbody')
  if ($('summary').hidden) return
  for (const card of order) {
    const { w, f } = card
    if (!card.row) {
      card.row = make('tr')
      const name = card.row.appendChild(make('th'))
      name.scope = 'row'
      const a = name.appendChild(make('a', w.name, 'level'))
      a.href = '#' + encodeURIComponent(card.el.id)
      a.addEventListener('click', e => {
        e.preventDefault() // going to the fragment would take the focus away
        card.el.open = true
        card.el.scrollIntoView()
        card.el.firstElementChild.focus()
      })
      name.append(make('small'))
      for (const c of ['w2', 'n w3', 'n w2', 'n w3', 'n w2', 'n', 'n w3', 'n']) card.row.append(make('td', null, c))
    }
    const [a, under] = card.row.cells[0].children
    a.dataset.level = f.verdict.level
    const counts = [f.minute.outcomes, f.minute.drops].flatMap(Object.entries).filter(([name]) => name !== 'filtered')
    const sum = of => of.reduce((n, [, each]) => n + each, 0)
    const ended = sum(counts), lost = sum(counts.filter(([name]) => name !== 'ok' && name !== 'cancelled'))
    const state = ['ok', 'idle'].includes(f.verdict.level) ? f.phase : `${f.verdict.text} (for ${card.since()})`
    put(under, state)
    const texts = [state, `${f.in_flight} / ${w.lanes}`, short(f.rates.finished), short(f.rates.output_tokens), latency(f.minute.ttft.p50),
      latency(f.minute.ttft.p99), latency(f.minute.tpot.p99), ended ? percent(lost / ended) : '–']
    texts.forEach((text, i) => put(card.row.cells[i + 1], text))
    card.row.cells[6].classList.toggle('over', f.minute.ttft.p99 > w.bounds.ttft)
    card.row.cells[7].classList.toggle('over', f.minute.tpot.p99 > w.bounds.tpot)
    card.row.cells[8].classList.toggle('over', lost > 0)
  }
  // Worst first, but nothing moves under a finger or the focus.
  if (body.matches(':focus-within') || matchMedia('(hover: hover)').matches && body.matches(':hover')) return
  const sorted = order.toSorted((a, b) => rank.indexOf(a.f.verdict.level) - rank.indexOf(b.f.verdict.level))
  sorted.forEach((card, i) => { if (body.rows[i] !== card.row) body.insertBefore(card.row, body.rows[i] ?? null) })
  while (body.rows.length > sorted.length) body.lastChild.remove()
}

for (const [id, open] of [['open-all', true], ['close-all', false]]) {
  $(id).addEventListener('click', () => { for (const card of order) card.el.open = open })
}

function connect() {
  source?.close()
  tried = Date.now()
  source = new EventSource('live/events')
  for (const [name, take] of [['all', all], ['news', news]]) {
    source.addEventListener(name, e => {
      heard = Date.now()
      broken = false
      take(JSON.parse(e.data))
      pulse()
    })
  }
  source.onerror = () => { broken = true; pulse() }
}

// How old the figures are. A stream that the browser gave up is opened anew; a silent one gets more time.
function pulse() {
  const now = Date.now(), age = Math.max(0, (now - heard) / 1000), silent = (now - Math.max(heard, tried)) / 1000
  const gone = broken || age >= lost
  if (gone && silent >= (source.readyState === EventSource.CLOSED ? retry : patience)) connect()
  document.body.classList.toggle('gone', gone)
  $('pulse').hidden = !board
  $('pulse').className = gone ? 'gone' : age >= late ? 'late' : 'live'
  put($('pulse').lastChild, age < late && !gone ? 'live' : `${long(age)} old`)
  $('lost').hidden = !gone
  put($('lost'), gone ? 'The connection to replayd is lost: these figures are old. Trying again…' : '')
  if (gone) document.title = '✕ connection lost · replayd'
}

connect()
setInterval(pulse, 1000)
document.addEventListener('visibilitychange', pulse)
addEventListener('online', pulse)

// Figures in words. null is what is not known.

export const count = n => n.toLocaleString('en-US')

// Three digits: 7.31, 482, 12.4k.
export function short(n) {
  if (n == null) return '–'
  const [by, unit] = n >= 999.5e6 ? [1e9, 'G'] : n >= 999.5e3 ? [1e6, 'M'] : n >= 9999.5 ? [1e3, 'k'] : [1, '']
  const v = n / by
  if (!unit && v >= 1000) return count(Math.round(v))
  return v.toFixed(v === 0 || v >= 99.95 ? 0 : v >= 9.995 || unit ? 1 : 2) + unit
}

export function latency(s) {
  if (s == null) return '–'
  if (s < 0.9995e-3) return Math.round(s * 1e6) + ' µs'
  if (s < 0.9995) return (s * 1e3).toFixed(s < 9.95e-3 ? 1 : 0) + ' ms'
  return s < 99.95 ? s.toFixed(s < 9.995 ? 2 : 1) + ' s' : long(s)
}

// The same for a round value: 5 ms, 0.5 s, 10 s.
export const round = s => s < 0.9995e-3 ? latency(s) : s < 0.9995 ? +(s * 1e3).toFixed(1) + ' ms' : s < 60 ? +s.toFixed(1) + ' s' : long(s)

const two = n => String(n).padStart(2, '0')

// A place in a trace: 23:41, 1:00:00.
export function clock(s) {
  s = Math.floor(s)
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`
}

// How long, in the two largest units: 36 min 19 s.
export function long(s) {
  s = Math.max(0, Math.round(s))
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]
  const i = s ? units.findIndex(([of]) => s >= of) : 3
  const rest = i < 3 ? Math.floor(s % units[i][0] / units[i + 1][0]) : 0
  return Math.floor(s / units[i][0]) + ' ' + units[i][1] + (rest ? ` ${rest} ${units[i + 1][1]}` : '')
}

export function percent(share) {
  const p = share * 100
  return (p > 0 && p < 0.1 ? '<0.1' : p > 99.9 && p < 100 ? '>99.9' : p.toFixed(p > 0 && p < 10 || p > 99 && p < 100 ? 1 : 0)) + ' %'
}

// An instant in the viewer's own time; the day too, when it is not today.
export function time(unix) {
  const d = new Date(unix * 1000)
  const day = d.toDateString() === new Date().toDateString() ? '' : d.toLocaleDateString('en-CA') + ' '
  return day + [d.getHours(), d.getMinutes(), d.getSeconds()].map(two).join(':')
}

// What outcomes and reasons mean.
export const meaning = {
  ok: 'a proper end, with content',
  http_3xx: 'redirected, which is never followed',
  http_4xx: 'the server refused the request',
  http_429: 'the server has too many requests',
  http_5xx: 'the server failed',
  connect: 'no connection',
  timeout_connect: 'no connection in time',
  no_answer: 'closed before an answer',
  timeout_first_token: 'no first token in time',
  timeout_stall: 'the stream stood still too long',
  timeout_total: 'not done in time',
  truncated: 'the answer broke off',
  bad_stream: 'not what the API promises',
  error_event: 'an error inside the stream',
  server_abort: 'the server gave up in mid-answer',
  empty: 'a proper end without content',
  cancelled: 'cancelled as configured',
  aborted: 'cut by replayd when it stopped',
  overload: 'no free lane in time',
  guard: 'held back by the guard',
  budget: 'over the budget',
  paused: 'due while paused',
  missed: 'replayd did not run then',
  session_failed: 'an earlier turn failed',
  invalid: 'its message could not be built',
  shutdown: 'still waiting at a stop',
  filtered: 'over the length limits, never due',
}

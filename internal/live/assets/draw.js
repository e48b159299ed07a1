// Pictures are paths in a box of one unit a slot and 100 units high, stretched to their place. The style sheet colors them.

const NS = 'http://www.w3.org/2000/svg'

export const most = values => values.reduce((max, v) => v > max ? v : max, 0)

// Adds a picture to a place and gives its paths by class.
export function picture(plot, width, classes) {
  const svg = document.createElementNS(NS, 'svg')
  for (const [k, v] of [['viewBox', `0 0 ${width} 100`], ['preserveAspectRatio', 'none'], ['aria-hidden', 'true']]) svg.setAttribute(k, v)
  const paths = {}
  for (const c of classes) {
    paths[c] = svg.appendChild(document.createElementNS(NS, 'path'))
    paths[c].setAttribute('class', c)
  }
  plot.querySelector('svg')?.remove()
  plot.prepend(svg)
  return paths
}

const at = v => +v.toFixed(2)

// Runs of known values as their corners: each in the middle of its slot, the ends at the edges, so that one alone is seen.
function runs(ys) {
  const all = []
  let run
  ys.forEach((y, i) => {
    if (y == null) return run = null
    if (!run) all.push(run = [[i, y]])
    else run.push([i + 0.5, y])
    if (ys[i + 1] == null) run.push([i + 1, y])
  })
  return all
}

const through = corners => corners.map(([x, y]) => x + ' ' + at(y)).join('L')

export const line = ys => runs(ys).map(r => 'M' + through(r)).join('')

// What lies between two lines that are known at the same places.
export function area(tops, bottoms) {
  const below = runs(bottoms.map((y, i) => tops[i] == null ? null : y))
  return runs(tops).map((r, i) => 'M' + through(r.concat(below[i].toReversed())) + 'z').join('')
}

export const steps = ys => 'M0 100' + ys.map((y, i) => `V${at(y)}H${i + 1}`).join('') + 'V100z'

// A logarithmic scale for times, at least a decade, from and to a 1, 2 or 5; null of nothing.
export function scale(values) {
  const known = values.filter(v => v > 0)
  if (!known.length) return null
  const ladder = []
  for (let e = -6; e < 5; e++) ladder.push(...[1, 2, 5].map(n => n * 10 ** e))
  let i = Math.max(0, ladder.findLastIndex(v => v <= Math.min(...known) * 1.001))
  let j = ladder.findIndex(v => v >= most(known) * 0.999)
  while (j - i < 3) if (i > 0 && (j - i) % 2) i--; else j++
  const marks = ladder.slice(i, j + 1).filter((_, k, all) => all.length < 6 || (i + k) % 3 === 0)
  return { marks, y: v => v == null ? null : 100 - 100 * Math.min(1, Math.max(0, Math.log(v / ladder[i]) / Math.log(ladder[j] / ladder[i]))) }
}

// Says what lies under the pointer.
export function read(plot, n, out, text) {
  plot.onpointermove = plot.onpointerdown = e => {
    const box = plot.getBoundingClientRect(), i = Math.floor(n * (e.clientX - box.left) / box.width)
    if (i < 0 || i >= n) return
    out.textContent = text(i)
    plot.style.setProperty('--read', 100 * (i + 0.5) / n + '%')
    plot.classList.add('reading')
  }
  plot.onpointerleave = () => { out.textContent = ''; plot.classList.remove('reading') }
}

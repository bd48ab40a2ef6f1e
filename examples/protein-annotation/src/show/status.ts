import type { Job } from '@fencepost/engine'
import { bar, type Screen, type Style } from './screen.ts'
import { labelOf } from './timeline.ts'

const barWidth = 24
const smallBarWidth = 12
const maxChildren = 8

const styles: Record<Job['status'], Style> = {
  pending: 'yellow',
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  cancelled: 'yellow',
}

/** What is drawn again and again: each parent with its bar, below it those of its children that are under way. */
export function statusLines(root: Job, descendants: readonly Job[], screen: Screen): string[] {
  const children = descendants.filter(({ parentJobId }) => parentJobId === root.jobId).toReversed()
  const underWay = children.filter(({ status }) => status === 'running')
  const shown = underWay.slice(0, maxChildren).map((one) => childLine(one, descendants, screen))
  const hidden = underWay.length - shown.length
  return [rootLine(root, children, screen), ...shown, ...(hidden > 0 ? [`   and ${hidden} more under way`] : [])]
}

function rootLine(root: Job, children: readonly Job[], screen: Screen): string {
  const count = (status: Job['status']) => children.filter((one) => one.status === status).length
  const state = screen.style(styles[root.status], root.status.padEnd(9))
  const label = labelOf(root).padEnd(24)
  if (children.length === 0) {
    const { current = 0, total = current } = root.progress ?? {}
    const known = root.progress?.total !== undefined || root.status === 'completed'
    const drawn = known ? bar(current, total, barWidth) : '░'.repeat(barWidth)
    return `▸ ${label} ${state} ${screen.style('cyan', drawn)} ${current > 0 ? current : ''}`.trimEnd()
  }
  const [done, failed, cancelled, pending] = [count('completed'), count('failed'), count('cancelled'), count('pending')]
  const drawn = screen.style(failed > 0 ? 'red' : 'cyan', bar(done, children.length, barWidth))
  const rest = [
    `${done} of ${children.length} children`,
    pending > 0 ? `${pending} waiting` : '',
    failed > 0 ? `${failed} failed` : '',
    cancelled > 0 ? `${cancelled} cancelled` : '',
  ]
  return `▸ ${label} ${state} ${drawn} ${rest.filter((text) => text !== '').join(' · ')}`
}

// A batch that waits for the write stage has computed everything.
function childLine(child: Job, descendants: readonly Job[], screen: Screen): string {
  const writing = descendants.find(({ parentJobId }) => parentJobId === child.jobId)
  const { current = 0, total = current } = child.progress ?? {}
  const drawn =
    child.deferredAt !== undefined || total > 0 ? bar(current, total, smallBarWidth) : '░'.repeat(smallBarWidth)
  const stage =
    writing === undefined ? `attempt ${child.attempts}` : `storing, attempt ${Math.max(1, writing.attempts)}`
  return `   ${labelOf(child).padEnd(33)} ${screen.style('cyan', drawn)} ${screen.style('dim', stage)}`
}

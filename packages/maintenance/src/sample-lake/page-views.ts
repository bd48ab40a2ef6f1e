import { writeDataFiles, type Row } from '@fencepost/iceberg'
import { beginTable, columns, dayMs, micros, scaled, type LakeTable, type Making } from './lake-table.ts'
import type { Seeded } from './seeded.ts'

const pages = [
  '/',
  '/pricing',
  '/docs/start',
  '/docs/guides/iceberg',
  '/blog/small-files',
  '/blog/what-is-a-fence',
  '/customers',
  '/signup',
  '/login',
  '/search?q=compaction',
] as const
const referrers = [null, 'https://www.google.com/', 'https://news.ycombinator.com/', 'https://duckduckgo.com/'] as const
const places = ['DE', 'US', 'US', 'GB', 'IN', 'BR', 'FR', 'JP', 'NL', 'PL'] as const
const devices = ['desktop', 'desktop', 'mobile', 'mobile', 'tablet'] as const

const rowsPerFile = 20

/** A stream that commits every few hours, each time into several files: small files and old snapshots. */
export const pageViews: LakeTable = {
  namespace: 'analytics',
  name: 'page_views',
  story: 'a stream of clicks: small files every few hours, and a snapshot each time',
  make: async (making) => {
    const { nowMs, scale } = making
    const days = scaled(30, scale, 5)
    const commits = scaled(200, scale, 20)
    // 7 and 8 files in turn.
    const filesOf = (commit: number): number => 7 + (commit % 2)
    const begin = startOfDay(nowMs) - (days - 1) * dayMs
    const { table, random, at } = await beginTable(making, pageViews, begin, {
      schema: {
        fields: columns({
          event_id: 'long',
          viewed_at: 'timestamptz',
          user_id: 'long',
          session_id: 'string',
          page: 'string',
          'referrer?': 'string',
          country: 'string',
          device: 'string',
          load_ms: 'int',
        }),
      },
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'day', transform: { name: 'day' } }] },
      properties: {
        'history.expire.max-snapshot-age-ms': String(dayMs),
        'history.expire.min-snapshots-to-keep': '5',
        comment: 'One row for each page that somebody looked at.',
      },
    })
    // Those of one commit are of one day, so that they are in as many files as the writer has threads.
    const commitsOfDay = (day: number): number[] =>
      Array.from({ length: commits }, (_, commit) => commit).filter(
        (commit) => Math.floor((commit * days) / commits) === day,
      )
    let eventId = 0n
    for (let day = 0; day < days; day += 1) {
      const own = commitsOfDay(day)
      if (own.length === 0) continue
      const files = own.reduce((sum, commit) => sum + filesOf(commit), 0)
      const from = begin + day * dayMs
      const until = Math.min(from + dayMs, nowMs)
      const rows: Row[] = Array.from({ length: files * rowsPerFile }, (_, row) => {
        eventId += 1n
        return pageView(random, eventId, from + ((until - from) * row) / (files * rowsPerFile))
      })
      const written = await writeDataFiles(making.duckDb, table.loaded, rows, writing(making))
      let taken = 0
      for (const [index, commit] of own.entries()) {
        making.signal?.throwIfAborted()
        at(from + ((until - from) * (index + 1)) / own.length)
        await table.appendFiles(written.slice(taken, taken + filesOf(commit)))
        taken += filesOf(commit)
        making.onProgress((commit + 1) / commits)
      }
    }
    return table
  },
}

function writing({ signal }: Making) {
  return { maxRowsPerFile: rowsPerFile, signal }
}

function startOfDay(ms: number): number {
  return Math.floor(ms / dayMs) * dayMs
}

function pageView(random: Seeded, eventId: bigint, ms: number): Row {
  const userId = 1000 + random.skewed(4000)
  return {
    event_id: eventId,
    viewed_at: micros(ms),
    user_id: BigInt(userId),
    session_id: `${userId.toString(36)}-${Math.floor(ms / 1_800_000).toString(36)}`,
    page: random.pick(pages),
    referrer: random.pick(referrers),
    country: random.pick(places),
    device: random.pick(devices),
    load_ms: 80 + random.skewed(3000),
  }
}

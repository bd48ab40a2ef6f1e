import type { Notice } from '../wake.ts'

/** What was sent, or undefined for what nobody of ours can have sent: others may be on the same channel. */
export function parseNotice(text: string | undefined): Notice | undefined {
  try {
    const notice = JSON.parse(text ?? '') as Partial<Record<string, unknown>> | null
    if (notice?.['kind'] === 'wake' && typeof notice['queue'] === 'string') return notice as Notice
    if (notice?.['kind'] === 'cancel' && typeof notice['attempt_id'] === 'string') return notice as Notice
    if (notice?.['kind'] === 'watch' && typeof notice['ms'] === 'number') return notice as Notice
    if (notice?.['kind'] === 'events') return notice as Notice
    return undefined
  } catch {
    return undefined
  }
}

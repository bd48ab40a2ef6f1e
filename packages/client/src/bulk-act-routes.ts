import { z } from 'zod'
import { bulkAct, bulkStart, newPreview, preview } from './bulk-act.ts'
import type { Route } from './route.ts'

const bulkActPath = z.object({ bulk_act_id: z.string() })

/** What acts on all jobs of a filter. */
export const bulkActRoutes = {
  listBulkActs: {
    method: 'GET',
    path: '/bulk-acts',
    summary: 'The acts on all jobs of a filter that were started, the latest first',
    tag: 'bulk acts',
    role: 'viewer',
    status: 200,
    answer: z.array(bulkAct),
    errors: [],
  },
  getBulkAct: {
    method: 'GET',
    path: '/bulk-acts/{bulk_act_id}',
    summary: 'One act, and how far it has come',
    tag: 'bulk acts',
    role: 'viewer',
    params: bulkActPath,
    status: 200,
    answer: bulkAct,
    errors: ['bulk_act_not_found'],
  },
  previewBulkAct: {
    method: 'POST',
    path: '/bulk-acts/preview',
    summary: 'Counts the jobs of a filter, and gives a token to act on them within a minute',
    tag: 'bulk acts',
    role: 'operator',
    body: newPreview,
    status: 200,
    answer: preview,
    errors: [],
  },
  startBulkAct: {
    method: 'POST',
    path: '/bulk-acts',
    summary: 'Starts the act that was previewed; it is done in batches',
    tag: 'bulk acts',
    role: 'operator',
    body: bulkStart,
    status: 202,
    answer: bulkAct,
    answerHeaders: { Location: 'Where the act is.' },
    errors: ['bulk_token_invalid', 'bulk_set_grown'],
  },
  stopBulkAct: {
    method: 'POST',
    path: '/bulk-acts/{bulk_act_id}/stop',
    summary: 'Ends an act after the batch that is under way',
    tag: 'bulk acts',
    role: 'operator',
    params: bulkActPath,
    status: 200,
    answer: bulkAct,
    errors: ['bulk_act_not_found', 'bulk_act_ended'],
  },
} as const satisfies Record<string, Route>

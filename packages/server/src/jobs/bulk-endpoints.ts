import { routes, type BulkAct as BulkActAnswer, type Preview as PreviewAnswer } from '@fencepost/client'
import type { BulkAct, Engine, Started } from '@fencepost/engine'
import { z } from 'zod'
import type { Presenter } from '../application.ts'
import { endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import type { Filters } from './filter.ts'
import { isId } from './job-reader.ts'

/** Acts on all jobs of a filter. */
export function bulkEndpoints({ bulkActs }: Engine, present: Presenter, filters: Filters): readonly Endpoint[] {
  const { shape } = routes.previewBulkAct.body
  const body = z.strictObject({ ...shape, filter: filters.extend(shape.filter) })
  const existing = async (bulkActId: string) => {
    const found = isId(bulkActId) ? await bulkActs.get(bulkActId.toLowerCase()) : undefined
    if (found === undefined) {
      throw new ApiError('bulk_act_not_found', `There is no bulk act ${JSON.stringify(bulkActId.slice(0, 64))}.`)
    }
    return found
  }
  return [
    endpoint(routes.listBulkActs, async () => ({ body: (await bulkActs.list()).map(bulkActJson) })),
    endpoint(routes.getBulkAct, async ({ params }) => ({ body: bulkActJson(await existing(params.bulk_act_id)) })),
    endpoint({ ...routes.previewBulkAct, body }, async ({ body: { act, filter }, caller }) => {
      const preview = await bulkActs.preview(act, filters.read(filter), { by: caller.name })
      const { token, count, expiresAt } = preview
      const sample = (await present.summaries(preview.sample, [])) as PreviewAnswer['sample']
      return { body: { token, act, count, sample, expires_at: expiresAt } }
    }),
    endpoint(routes.startBulkAct, async ({ body: { token }, caller }) => {
      const started = await bulkActs.start(token, { by: caller.name })
      if (!started.started) throw refusalOf(started)
      const { bulkAct } = started
      return { body: bulkActJson(bulkAct), headers: { location: `/bulk-acts/${bulkAct.bulkActId}` } }
    }),
    endpoint(routes.stopBulkAct, async ({ params }) => {
      const { bulkActId, state } = await existing(params.bulk_act_id)
      if (!(await bulkActs.stop(bulkActId))) {
        throw new ApiError('bulk_act_ended', `Bulk act ${bulkActId} has already ended.`, { details: { state } })
      }
      return { body: bulkActJson(await existing(bulkActId)) }
    }),
  ]
}

function refusalOf(refused: Extract<Started, { started: false }>): ApiError {
  switch (refused.why) {
    case 'grown':
      return new ApiError(
        'bulk_set_grown',
        `${refused.count} jobs fit now, and ${refused.previewed} were previewed. Make a new preview.`,
        { details: { previewed_count: refused.previewed, count: refused.count } },
      )
    case 'token_unknown':
    case 'token_expired':
      return new ApiError('bulk_token_invalid', 'The token is not known, or older than a minute. Make a new preview.')
  }
}

function bulkActJson(bulkAct: BulkAct): BulkActAnswer {
  return {
    bulk_act_id: bulkAct.bulkActId,
    act: bulkAct.act,
    state: bulkAct.state as BulkActAnswer['state'], // one that is only previewed is not shown
    previewed_count: bulkAct.previewedCount,
    done: bulkAct.done,
    refused: bulkAct.refused,
    submitted_by: bulkAct.submittedBy ?? null,
    started_at: bulkAct.startedAt ?? bulkAct.previewedAt,
    ended_at: bulkAct.endedAt ?? null,
  }
}

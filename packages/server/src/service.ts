import { routes, type PipelineQuery } from '@fencepost/client'
import { version, type Engine, type Operation } from '@fencepost/engine'
import type { Access } from './access/access.ts'
import { createToken, listTokens, revokeToken } from './access/tokens.ts'
import { callerKey, endpoint, type Call, type Endpoint } from './endpoint.ts'
import { ApiError } from './error.ts'
import type { Streams } from './events/streams.ts'
import { isId } from './jobs/job-reader.ts'
import type { JobPages } from './jobs/page.ts'

const readyWithinMs = 2_000

/** Operations, pipelines, workers and drain. */
export function serviceEndpoints(engine: Engine, pages: JobPages): readonly Endpoint[] {
  const pipeline = async (
    pipelineId: string,
    call: Pick<Call, 'caller' | 'request'>,
    { include, limit, after }: PipelineQuery = {},
  ) => {
    const more = { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) }
    const found = isId(pipelineId)
      ? await pages.page(callerKey(call), include, (bounds) => engine.pipelinePage(pipelineId, { ...bounds, ...more }))
      : undefined
    if (found === undefined) {
      const given = JSON.stringify(pipelineId.slice(0, 64))
      throw new ApiError('pipeline_not_found', `No job belongs to a pipeline ${given}.`)
    }
    const { page, items, headers } = found
    const head = JSON.stringify({ pipeline_id: page.pipelineId, status: page.status }).slice(0, -1)
    return { pipelineId: page.pipelineId, answer: { json: `${head},"jobs":[${items.join(',')}]}`, headers } }
  }
  const drain = async () => {
    const { level, updatedAt, updatedBy } = await engine.drain()
    return { level, updated_at: updatedAt ?? null, updated_by: updatedBy ?? null }
  }
  return [
    endpoint(routes.listOperations, async () => ({ body: engine.operations.map(operationJson) })),
    endpoint(
      routes.getPipeline,
      async ({ params, query, ...call }) => (await pipeline(params.pipeline_id, call, query)).answer,
    ),
    endpoint(routes.abortPipeline, async ({ params, caller, request }) => {
      const call = { caller, request }
      const { pipelineId } = await pipeline(params.pipeline_id, call, { limit: 1 })
      const answer = await engine.abortPipeline(pipelineId, { by: caller.name })
      if (answer.aborted || answer.why === 'not_found') return (await pipeline(pipelineId, call)).answer
      throw new ApiError('nothing_to_abort', `All jobs of pipeline ${pipelineId} have ended.`, {
        details: { pipeline_id: pipelineId },
      })
    }),
    endpoint(routes.listWorkers, async () => ({
      body: (await engine.workers()).map(({ workerId, startedAt, seenAt, ...rest }) => ({
        worker_id: workerId,
        started_at: startedAt,
        seen_at: seenAt,
        ...rest,
      })),
    })),
    endpoint(routes.getDrain, async () => ({ body: await drain() })),
    endpoint(routes.setDrain, async ({ body, caller }) => {
      await engine.setDrain(body.level, { by: caller.name })
      return { body: await drain() }
    }),
  ]
}

/** What tells whether the server lives and works. */
export function healthEndpoints(engine: Engine): readonly Endpoint[] {
  return [
    endpoint(routes.healthz, async () => ({ body: { status: 'ok' as const, version } })),
    endpoint(routes.readyz, async () => {
      const schema = await within(readyWithinMs, engine.schemaVersion())
      if (schema === undefined) throw new ApiError('not_ready', 'The database does not answer.')
      if (schema.current === schema.latest) return { body: { status: 'ready' as const, schema } }
      throw new ApiError('not_ready', `The schema is at version ${schema.current}; this release is ${schema.latest}.`, {
        details: { schema },
      })
    }),
  ]
}

/** The tokens, for administrators. */
export function tokenEndpoints(
  engine: Engine,
  access: Access,
  streams: Pick<Streams, 'tokenMade' | 'revoked'>,
): readonly Endpoint[] {
  const { database } = engine
  return [
    endpoint(routes.listTokens, async () => ({ body: await listTokens(database) })),
    endpoint(routes.createToken, async ({ body, caller }) => {
      if (body.role !== 'admin' && (await access.isOpen())) {
        throw new ApiError(
          'request_invalid',
          'The first token must be one of an admin: from then on every call needs one.',
        )
      }
      const made = await createToken(database, body, caller.name)
      access.tokenMade()
      streams.tokenMade()
      return { body: made }
    }),
    endpoint(routes.revokeToken, async ({ params, caller }) => {
      const known = /^[0-9a-f]{12}$/.test(params.token_id)
      const answer = known ? await revokeToken(database, params.token_id, caller.name) : undefined
      if (answer?.revoked) {
        streams.revoked(params.token_id)
        return { body: undefined }
      }
      if (answer?.why === 'last_admin') {
        throw new ApiError('token_last_admin', 'This is the last token of an admin: make another one first.')
      }
      if (answer?.why === 'already_revoked') throw new ApiError('token_revoked', 'The token was already revoked.')
      throw new ApiError('token_not_found', 'There is no such token.')
    }),
  ]
}

interface JsonSchemaSource {
  jsonSchema?: { input?: (options: { target: string }) => Record<string, unknown> }
}

function operationJson(operation: Operation) {
  return {
    name: operation.name,
    queue: operation.queue,
    max_attempts: operation.maxAttempts,
    lease_ms: operation.leaseMs,
    timeout_ms: operation.timeoutMs ?? null,
    isolation: operation.isolation,
    keys: operation.keys,
    payload_schema: payloadSchema(operation),
  }
}

// Standard JSON Schema, which validators of several makers can give; one that cannot, or not for this schema, throws.
function payloadSchema({ payload }: Operation): Record<string, unknown> | null {
  try {
    return (payload['~standard'] as JsonSchemaSource).jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? null
  } catch {
    return null
  }
}

/** What it comes to, or undefined after so long, or if it fails. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  try {
    return await Promise.race([work.catch(() => undefined), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

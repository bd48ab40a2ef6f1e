import {
  apiErrors,
  errorsOf,
  errorAnswer,
  isApiErrorCode,
  job,
  jobEvent,
  jobSummary,
  type ApiErrorCode,
  type Route,
} from '@fencepost/client'
import { z } from 'zod'

type JsonObject = Record<string, unknown>

// Schemas that many routes share are written once.
const named: readonly (readonly [string, z.ZodType])[] = [
  ['Job', job],
  ['JobSummary', jobSummary],
  ['JobEvent', jobEvent],
  ['Error', errorAnswer],
]

/** The API as an OpenAPI 3.1 document, made of the same table that serves it. */
export function openApiDocument(routes: readonly Route[], version: string): JsonObject & { openapi: string } {
  const paths: Record<string, JsonObject> = {}
  for (const route of routes) {
    const methods = (paths[route.path] ??= {})
    methods[route.method.toLowerCase()] = operationOf(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Fencepost',
      version,
      description: 'Background jobs that must not run twice. Times are RFC 3339 in UTC with microseconds.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: Object.fromEntries(named.map(([name, schema]) => [name, jsonSchema(schema, 'output', schema)])),
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Not needed on loopback as long as there is no token.' },
      },
    },
  }
}

function operationOf(route: Route): JsonObject {
  return {
    summary: route.summary,
    operationId: operationId(route),
    tags: [route.tag],
    security: route.role === 'public' ? [] : [{ token: [] }],
    'x-role': route.role,
    parameters: [...parametersOf(route.params, 'path'), ...parametersOf(route.query, 'query'), ...headersOf(route)],
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: jsonSchema(route.body, 'input') } },
          },
        }),
    responses: responsesOf(route),
  }
}

function operationId({ method, path }: Route): string {
  return `${method.toLowerCase()}${path.replace(/[^a-z]+([a-z])/g, (_, letter: string) => letter.toUpperCase()).replace(/\W/g, '')}`
}

function parametersOf(schema: z.ZodObject | undefined, where: 'path' | 'query'): JsonObject[] {
  return Object.entries(schema?.shape ?? {}).map(([name, property]) => {
    const { description, ...rest } = jsonSchema(property as z.ZodType, 'output')
    const required = where === 'path' || !(property as z.ZodType).safeParse(undefined).success
    // Lists are written with commas.
    const style = rest['type'] === 'array' ? { style: 'form', explode: false } : {}
    return { name, in: where, required, ...(description === undefined ? {} : { description }), ...style, schema: rest }
  })
}

function headersOf({ requestHeaders = {} }: Route): JsonObject[] {
  return Object.entries(requestHeaders).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: name === 'Last-Event-ID' ? { type: 'string', pattern: '^\\d{1,18}(\\.\\d{1,18})?$' } : keySchema,
  }))
}

const keySchema = { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' }

function responsesOf(route: Route): JsonObject {
  const { answer, answerHeaders = {}, stream } = route
  const content: JsonObject = {}
  if (answer !== null) {
    if (answer instanceof z.ZodType) content['application/json'] = { schema: jsonSchema(answer, 'output') }
    else content[answer.mediaType] = { schema: { type: 'string' } }
  }
  if (stream !== undefined) content['text/event-stream'] = { schema: { type: 'string' } }
  const success = {
    description: route.summary,
    ...(Object.keys(content).length === 0 ? {} : { content }),
    ...(Object.keys(answerHeaders).length === 0
      ? {}
      : {
          headers: Object.fromEntries(
            Object.entries(answerHeaders).map(([name, description]) => [
              name,
              { description, required: false, schema: { type: 'string' } },
            ]),
          ),
        }),
  }
  return { [route.status]: success, ...errorResponses(errorsOf(route)) }
}

function errorResponses(codes: readonly ApiErrorCode[]): JsonObject {
  const byStatus = new Map<number, ApiErrorCode[]>()
  for (const code of codes.filter(isApiErrorCode)) {
    const { status } = apiErrors[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [
      status,
      {
        description: some.map((code) => `\`${code}\`: ${apiErrors[code].meaning}`).join(' '),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}

/** The JSON Schema of a schema, with references to the named ones, except to `self`. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', self?: z.ZodType): JsonObject {
  const made = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema: part }) => {
      const reference = named.find(([, one]) => (one as unknown) === zodSchema && one !== self)
      if (reference === undefined) return
      for (const key of Object.keys(part)) delete (part as JsonObject)[key]
      part.$ref = `#/components/schemas/${reference[0]}`
    },
  })
  delete made.$schema
  return made
}

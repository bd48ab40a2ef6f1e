import { IcebergError } from '../errors.ts'
import { type Json, type JsonObject, parseJson } from '../json/json.ts'
import { isObject } from '../json/object-reader.ts'

/** An Avro schema with its names resolved and Iceberg's ids read. */
export type AvroSchema =
  | {
      readonly kind: 'null' | 'boolean' | 'int' | 'long' | 'float' | 'double' | 'bytes' | 'string' | 'enum'
      readonly logical?: AvroLogicalType
    }
  | { readonly kind: 'fixed'; readonly size: number; readonly logical?: AvroLogicalType }
  | { readonly kind: 'record'; readonly fields: AvroField[] }
  | { readonly kind: 'array'; readonly items: AvroSchema }
  | { readonly kind: 'map'; readonly values: AvroSchema }
  | { readonly kind: 'union'; readonly branches: readonly AvroSchema[] }

/** What a schema says that its numbers or bytes stand for. */
export interface AvroLogicalType {
  readonly name: string
  readonly adjustToUtc: boolean
  readonly precision: number
  readonly scale: number
}

export interface AvroField {
  readonly name: string
  /** Undefined when the writer gave none: such fields are matched by name. */
  readonly id: number | undefined
  readonly schema: AvroSchema
}

/** The fields of a record, or of the record that a nullable union holds; none of anything else. */
export function recordFields(schema: AvroSchema | undefined): readonly AvroField[] {
  const record = schema?.kind === 'union' ? schema.branches.find(({ kind }) => kind === 'record') : schema
  return record?.kind === 'record' ? record.fields : []
}

const plainKinds = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'])

// The manifests of a table have the same few schemas: each text is parsed once, and known by its object after that.
const parsed = new Map<string, AvroSchema>()
const maxParsed = 64

export function parseAvroSchema(text: string, what: string): AvroSchema {
  const known = parsed.get(text)
  if (known !== undefined) return known
  const schema = resolve(parseJson(text, `the Avro schema of ${what}`), new Map(), what)
  if (parsed.size >= maxParsed) parsed.clear()
  parsed.set(text, schema)
  return schema
}

function resolve(json: Json | undefined, named: Map<string, AvroSchema>, what: string): AvroSchema {
  if (Array.isArray(json)) return { kind: 'union', branches: json.map((branch) => resolve(branch, named, what)) }
  if (typeof json === 'string') {
    if (plainKinds.has(json)) return { kind: json as 'int' }
    const known = named.get(json) ?? named.get(json.split('.').pop() ?? '')
    if (known === undefined) throw invalid(what, `the type "${json}" is not defined`)
    return known
  }
  if (!isObject(json)) throw invalid(what, 'a type is neither a name nor an object')
  return resolveObject(json, named, what)
}

function resolveObject(json: JsonObject, named: Map<string, AvroSchema>, what: string): AvroSchema {
  const name = typeof json['name'] === 'string' ? json['name'] : ''
  switch (json['type']) {
    case 'record': {
      const record: AvroSchema = { kind: 'record', fields: [] }
      // Before its fields: a record may name itself.
      named.set(name, record)
      for (const field of Array.isArray(json['fields']) ? json['fields'] : []) {
        if (!isObject(field)) throw invalid(what, 'a field is not an object')
        const id = field['field-id']
        record.fields.push({
          name: typeof field['name'] === 'string' ? field['name'] : '',
          id: typeof id === 'number' ? id : undefined,
          schema: resolve(field['type'], named, what),
        })
      }
      return record
    }
    case 'enum': {
      const schema: AvroSchema = { kind: 'enum' }
      named.set(name, schema)
      return schema
    }
    case 'fixed': {
      const schema: AvroSchema = { kind: 'fixed', size: Number(json['size']), ...logicalOf(json) }
      named.set(name, schema)
      return schema
    }
    case 'array':
      return { kind: 'array', items: resolve(json['items'], named, what) }
    case 'map':
      return { kind: 'map', values: resolve(json['values'], named, what) }
    default: {
      const schema = resolve(json['type'], named, what)
      return plainKinds.has(schema.kind) ? { ...(schema as AvroSchema & { kind: 'int' }), ...logicalOf(json) } : schema
    }
  }
}

function logicalOf(json: JsonObject): { logical?: AvroLogicalType } {
  const { logicalType, precision, scale } = json
  if (typeof logicalType !== 'string') return {}
  return {
    logical: {
      name: logicalType,
      adjustToUtc: json['adjust-to-utc'] === true,
      precision: Number(precision ?? 0),
      scale: Number(scale ?? 0),
    },
  }
}

function invalid(what: string, message: string): IcebergError {
  return new IcebergError('avro_invalid', `The Avro schema of ${what} cannot be read: ${message}`)
}

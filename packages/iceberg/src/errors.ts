/** Every error this package throws by itself, by its code. */
export const icebergErrorCodes = {
  json_invalid: 'A text is not JSON.',
  metadata_invalid: 'Table metadata does not follow the format.',
  metadata_unsupported: 'Table metadata uses something this package refuses: a newer version, encryption, a transform.',
  schema_change_invalid: 'A change of schema, partition spec or sort order is not allowed.',
  update_invalid: 'A metadata update cannot be applied.',
  requirement_failed: 'The table is not as the caller required; nothing was changed.',
  value_invalid: 'A value does not fit its type, or its serialised form is damaged.',
  avro_invalid: 'A file is not Avro, is damaged, or has a schema that cannot be read.',
  manifest_invalid: 'A manifest or manifest list lacks a required field or breaks a rule of the format.',
  puffin_invalid: 'A Puffin file or deletion vector is damaged.',
  parquet_invalid: 'A file is not Parquet, is damaged, or is not what its table says.',
  type_unsupported: 'A column has a type or name that cannot be written exactly; nothing was written.',
  file_not_live: 'A file is not, or no longer, part of the branch.',
  ref_invalid: 'A branch, tag or snapshot is not there, or cannot be changed so.',
  parquet_failed: 'DuckDB could not read or write Parquet.',
  scan_unsupported: 'A table holds what cannot be read exactly: a type, or a file format.',
  scan_invalid: 'A scan names a snapshot, column or value that is not there.',
  location_invalid: 'A location is not one that a storage here can reach.',
  storage_not_found: 'A file is not there.',
  storage_exists: 'A file was to be created and is there already; it was not overwritten.',
  storage_range: 'A range is not inside its file.',
  storage_denied: 'The storage does not let these credentials do this.',
  storage_unsupported: 'The storage cannot do this safely.',
  storage_failed: 'The storage could not be reached, or failed; a write may have been done all the same.',
  staging_full: 'Files are larger than the staging folder may become.',
  name_invalid: 'The name of a namespace or table cannot be used in this catalog.',
  namespace_not_found: 'The namespace is not in the catalog.',
  namespace_exists: 'The namespace is in the catalog already.',
  namespace_not_empty: 'The namespace still holds tables, views or namespaces.',
  table_not_found: 'The table is not in the catalog.',
  table_exists: 'The catalog has a table or view of this name already.',
  action_refused: 'An action would not be safe on this table, or its options are wrong; nothing was changed.',
  proof_failed: 'What an action wrote is not what it read; nothing was changed.',
  commit_conflict: 'Another commit came first; nothing was changed.',
  commit_refused: 'The guard of a commit refused it; nothing was changed.',
  commit_unknown: 'Whether a commit was applied could not be found out; nothing of it may be cleaned up.',
  catalog_invalid: 'The catalog holds or answered something that does not follow its protocol.',
  catalog_unauthorized: 'The catalog does not know these credentials, or they have expired.',
  catalog_denied: 'The catalog does not let these credentials do this.',
  catalog_rejected: 'The catalog refused a request as wrong.',
  catalog_unsupported: 'This catalog cannot do this.',
  catalog_unavailable: 'The catalog could not be reached, or failed; a change may have been made all the same.',
} as const

export type IcebergErrorCode = keyof typeof icebergErrorCodes

/** An error with a code to branch on, and a message that says what happened, to what, and what to do. */
export class IcebergError extends Error {
  readonly code: IcebergErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: IcebergErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'IcebergError'
    this.code = code
    this.details = options.details ?? {}
  }
}

// The structs of parquet.thrift that are changed when files are joined, by the numbers of their fields.

export const fileMetaData = {
  version: 1,
  schema: 2,
  rowCount: 3,
  rowGroups: 4,
  keyValues: 5,
  createdBy: 6,
  columnOrders: 7,
  encryptionAlgorithm: 8,
  footerSigningKey: 9,
} as const

export const schemaElement = { type: 1, repetition: 3, name: 4, children: 5, fieldId: 9 } as const

export const keyValue = { key: 1 } as const

export const rowGroup = {
  columns: 1,
  totalByteSize: 2,
  rowCount: 3,
  sortingColumns: 4,
  fileOffset: 5,
  compressedSize: 6,
  ordinal: 7,
} as const

export const columnChunk = {
  filePath: 1,
  fileOffset: 2,
  metaData: 3,
  offsetIndexOffset: 4,
  offsetIndexLength: 5,
  columnIndexOffset: 6,
  columnIndexLength: 7,
  cryptoMetadata: 8,
  encryptedMetadata: 9,
} as const

export const columnMetaData = {
  type: 1,
  encodings: 2,
  path: 3,
  codec: 4,
  valueCount: 5,
  uncompressedSize: 6,
  compressedSize: 7,
  dataPageOffset: 9,
  indexPageOffset: 10,
  dictionaryPageOffset: 11,
  statistics: 12,
  encodingStats: 13,
  bloomFilterOffset: 14,
  bloomFilterLength: 15,
  geospatialStatistics: 17,
} as const

export const statistics = { nullCount: 3, maxValue: 5, minValue: 6 } as const

export const bloomFilterHeader = { bytes: 1 } as const

export const offsetIndex = { pages: 1 } as const
export const pageLocation = { offset: 1, compressedSize: 2, firstRow: 3 } as const

/** The highest number of a field that this package knows; what a later one says could be untrue of a copy. */
export const lastKnownField = {
  fileMetaData: fileMetaData.footerSigningKey,
  rowGroup: rowGroup.ordinal,
  columnChunk: columnChunk.encryptedMetadata,
  columnMetaData: columnMetaData.geospatialStatistics,
} as const

export const int64 = 2
export const repetition = { required: 0, optional: 1 } as const

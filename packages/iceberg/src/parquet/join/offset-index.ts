import { IcebergError } from '../../errors.ts'
import type { ByteRange } from '../../storage/storage.ts'
import { i64, structList, ThriftStruct } from '../thrift-compact.ts'
import { offsetIndex, pageLocation } from './parquet-fields.ts'
import { isInside } from './whole-footer.ts'

/**
 * The offset index of a column whose pages have moved: it says of each page where in the file it is, so it cannot be
 * copied as it is. Column indexes and Bloom filters say nothing of the kind.
 */
export function movedOffsetIndex(bytes: Uint8Array, pages: ByteRange, to: number): Buffer {
  const index = ThriftStruct.parse(bytes)
  const moved = (index.structs(offsetIndex.pages) ?? []).map((location) => {
    const offset = location.integer(pageLocation.offset) ?? -1
    if (!isInside(pages, offset)) {
      throw new IcebergError('parquet_invalid', `An offset index has a page at ${offset}, outside its column.`)
    }
    return location.with(i64(pageLocation.offset, offset - pages.offset + to))
  })
  return index.with(structList(offsetIndex.pages, moved)).encode()
}

import type { FoundDocument } from './search-documents.ts';

/** A document of the directory, as it is answered. */
export function documentView({ entity, entityId, name, at }: FoundDocument) {
  return { entity, entityId, ...(name === null ? {} : { name }), at: new Date(at).toISOString() };
}

const ownEntities: ReadonlySet<string> = new Set(['configuration', 'agent', 'custom-entity']);

/** Whether only this service records documents of the entity. The same holds for a tenant's custom types. */
export function isOwnEntity(entity: string): boolean {
  return ownEntities.has(entity) || entity.startsWith('annals-');
}

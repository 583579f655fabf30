const ownEntities: ReadonlySet<string> = new Set(['configuration', 'agent', 'custom-entity']);

/** Whether this service records documents of the entity itself. A tenant's own types are such entities too. */
export function isOwnEntity(entity: string): boolean {
  return ownEntities.has(entity) || entity.startsWith('annals-');
}

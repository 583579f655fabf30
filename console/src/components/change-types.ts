/** What happened to a document. */
export type ChangeType = 'create' | 'update' | 'delete';

export const changeTypes: readonly ChangeType[] = ['create', 'update', 'delete'];

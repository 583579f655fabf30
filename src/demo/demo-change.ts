/** One change of a document of the demo shop, in the form in which a real shop would report it. */
export interface DemoChange {
  op: 'insert' | 'update' | 'replace' | 'delete';
  entity: string;
  entityId: string;
  /** Milliseconds since 1970. */
  at: number;
  actor: string;
  name?: string;
  schemaVersion?: string;
  related: readonly { entity: string; entityId: string }[];
  before?: unknown;
  after?: unknown;
}

/** Where capture and the relay tell what an operator should know. */
export interface SourceLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
}

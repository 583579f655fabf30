import { readsHistory } from '../api/session.ts';
import { quoted } from '../query-text/quoted.ts';
import { Link } from '../router/link.tsx';

interface HistoryLinkProps {
  readonly entity: string;
  readonly entityId: string;
}

/** Leads to all changes of a document. Without a scope for the history there is none. */
export function HistoryLink({ entity, entityId }: HistoryLinkProps) {
  if (!readsHistory()) return null;
  const q = `entity:${quoted(entity)} entityId:${quoted(entityId)} occurredAt:>="1970-01-01T00:00:00Z"`;
  return <Link to={{ path: 'history', parameters: { q } }}>History</Link>;
}

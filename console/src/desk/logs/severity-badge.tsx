import { Badge } from '../../components/badge.tsx';

export type Severity = 'INFO' | 'WARNING' | 'ERROR';

const looks = {
  INFO: { tone: 'good', word: 'fine' },
  WARNING: { tone: 'warn', word: 'warning' },
  ERROR: { tone: 'bad', word: 'failed' },
} as const;

export function SeverityBadge({ severity }: { readonly severity: Severity }) {
  const { tone, word } = looks[severity];
  return <Badge tone={tone}>{word}</Badge>;
}

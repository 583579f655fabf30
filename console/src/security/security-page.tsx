import { later } from '../components/later.tsx';
import { TabbedViews, type View } from '../components/tabbed-views.tsx';
import { AccessesView } from './accesses-view.tsx';

const ProofView = later(async () => (await import('../proof/proof-view.tsx')).ProofView);

export const securityViews: readonly View[] = [
  { path: 'security/accesses', tab: 'Accesses', scopes: ['changelog.access_read'], Content: AccessesView },
  { path: 'security/proof', tab: 'Proof', scopes: ['changelog.proof_read'], Content: ProofView },
];

/** Who had access, and what proves the history. */
export function SecurityPage() {
  return <TabbedViews root="security" label="Security" views={securityViews} />;
}

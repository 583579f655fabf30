import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

interface EmptyStateProps {
  readonly icon: IconName;
  readonly title: string;
  /** Whether this is all of the page, whose heading the title then is. */
  readonly isPage?: boolean;
  /** Why there is nothing, and what to do about it. */
  readonly children?: ComponentChildren;
}

export function EmptyState({ icon, title, isPage = false, children }: EmptyStateProps) {
  const Heading = isPage ? 'h1' : 'h2';
  return (
    <div class="empty-state">
      <Icon name={icon} size={28} />
      <Heading>{title}</Heading>
      {children}
    </div>
  );
}

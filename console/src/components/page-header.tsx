import type { ComponentChildren } from 'preact';

interface PageHeaderProps {
  readonly title: ComponentChildren;
  /** A line below the title. */
  readonly lead?: ComponentChildren;
  /** Buttons and switches at the right. */
  readonly children?: ComponentChildren;
}

export function PageHeader({ title, lead, children }: PageHeaderProps) {
  return (
    <header class="page-header">
      <div>
        <h1>{title}</h1>
        {lead === undefined ? undefined : <p class="muted">{lead}</p>}
      </div>
      {children === undefined ? undefined : <div class="page-actions">{children}</div>}
    </header>
  );
}

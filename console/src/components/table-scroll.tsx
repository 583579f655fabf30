import type { ComponentChildren } from 'preact';

interface TableScrollProps {
  /** What is in it, for those who do not see it. */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways on a narrow screen. The keyboard reaches it, so that it scrolls without a pointer. */
export function TableScroll({ label, children }: TableScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <section class="table-scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

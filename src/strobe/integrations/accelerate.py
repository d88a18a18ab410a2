"""Accelerate's profiler with strobe behind it: `with accelerator.profile(ProfileKwargs(...)) as prof:`.

Takes what accelerate.utils.ProfileKwargs takes; `prof` is a profile of strobe.compat.torch. Accelerate knows handlers
of `Accelerator(kwargs_handlers=...)` by their exact class, so that these are for `profile` alone.
"""

from __future__ import annotations

from typing import Any

from strobe.integrations.training import framework

__all__ = ["ProfileKwargs"]

_ProfileKwargs: Any = framework("Accelerate", "accelerate", "accelerate.utils").ProfileKwargs


class ProfileKwargs(_ProfileKwargs):
    """The profiler that `accelerator.profile()` uses."""

    def build(self) -> Any:
        """Return the profiler, with the options that Accelerate would give PyTorch's."""
        from strobe.compat.torch import profile, schedule

        named = self.activities
        return profile(
            activities=None if named is None else [self._get_profiler_activity(each) for each in named],
            schedule=None if self.schedule_option is None else schedule(**self.schedule_option),
            on_trace_ready=self.on_trace_ready,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
        )

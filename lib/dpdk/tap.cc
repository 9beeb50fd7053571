// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/tap.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace sluice::dpdk::tap {
namespace {

class Fd {
public:
    explicit Fd(int fd) : fd_(fd) {}
    ~Fd() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    Fd(Fd&&) = delete;
    Fd& operator=(Fd&&) = delete;
    int get() const noexcept { return fd_; }

private:
    int fd_;
};

/// One interface request in the namespace where the interface is. Nothing is kept open in between:
/// a socket would keep a namespace alive that its owner has deleted.
int request(int queue_fd, unsigned long operation, ifreq& interface) noexcept {
    ifreq named{};
    if (ioctl(queue_fd, TUNGETIFF, &named) < 0) {
        return errno;
    }
    std::memcpy(interface.ifr_name, named.ifr_name, sizeof(named.ifr_name));
    const Fd there(ioctl(queue_fd, TUNGETDEVNETNS));
    const Fd here(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (there.get() < 0 || here.get() < 0 || setns(there.get(), CLONE_NEWNET) < 0) {
        return errno;
    }
    int error = 0;
    {
        const Fd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (control.get() < 0 || ioctl(control.get(), operation, &interface) < 0) {
            error = errno;
        }
    }
    // Anything this thread opened from here on would be in the wrong namespace.
    SLUICE_CHECK(setns(here.get(), CLONE_NEWNET) == 0);
    return error;
}

}  // namespace

bool is_running(int queue_fd) noexcept {
    ifreq interface{};
    constexpr unsigned kWanted = IFF_UP | IFF_RUNNING;
    return request(queue_fd, SIOCGIFFLAGS, interface) == 0 &&
           (static_cast<unsigned short>(interface.ifr_flags) & kWanted) == kWanted;
}

int set_mtu(int queue_fd, std::uint16_t mtu) noexcept {
    ifreq interface{};
    interface.ifr_mtu = mtu;
    return request(queue_fd, SIOCSIFMTU, interface);
}

}  // namespace sluice::dpdk::tap
